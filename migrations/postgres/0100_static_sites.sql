-- Deployed files answer at their own paths. A page of a deployed file knows its path.

-- Path on the site of the HTML file that the page shows, such as `docs/a.html`. Null for pages that the API made, and for
-- pages deployed before this migration, which answer at their slug.
alter table pages add path text;
create unique index pages_path on pages (subdomain_id, path) where path is not null;

-- The path of the page before the deploy, for rollbacks.
alter table deploy_pages add path text;

-- Why an HTML file is served without a page: `project_limit`, `too_large` or `unsupported`. Null for other files.
alter table deploy_files add reason text;

-- The parsed `_redirects` and `_headers` of a deploy, and whether unknown addresses answer with `index.html`. Null for none.
alter table deploys add rules jsonb;
