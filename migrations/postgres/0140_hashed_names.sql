-- Whether the name of a file has a hash of its content, so that browsers may keep it. Decided once per deploy, among the names
-- of all its files. Files of deploys before this migration are asked for again until the next deploy.
alter table deploy_files add content_hashed boolean not null default false;
