-- Files named by their content stay reachable for a day after another deploy replaced theirs, so that open tabs can load
-- the rest of the site that they show.

-- When a file that the served deploy took over from the one before it is deleted. Null for files of the deploy itself.
alter table deploy_files add expires_at timestamptz;
create index deploy_files_expiry on deploy_files (expires_at) where expires_at is not null;
