-- The owner's choices for the look of a form's pages: logo, accent colour and corner radius (domain::appearance::Appearance).
set local lock_timeout = '5s';

alter table forms add appearance jsonb not null default '{}';
