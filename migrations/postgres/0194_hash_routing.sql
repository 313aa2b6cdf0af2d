-- Release 0.2: sites with pages that differ by the fragment of the address (#/users/1).
set local lock_timeout = '5s';

-- Whether the tracker of the site's hosted pages counts each fragment as a page. Pages elsewhere have the attribute in
-- their own tag.
alter table analytics_sites add hash_routing boolean not null default false;
