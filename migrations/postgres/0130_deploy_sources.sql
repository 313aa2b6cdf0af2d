-- Deploys whose caller announces every file with its digest, and uploads only those that the account has not stored.

alter table deploys add has_manifest boolean not null default false;
-- A deploy without missing files has no zip.
alter table deploys drop constraint deploys_size_bytes_check;
alter table deploys add constraint deploys_size_bytes_check check (size_bytes >= 0);

-- Until its deploy is published: every announced file. Afterwards: the files that the site serves in another form, such as
-- HTML with rewritten references, until another deploy replaces it.
create table deploy_sources (
    deploy_id     uuid not null references deploys on delete cascade,
    -- Path from the top of the zip.
    path          text not null,
    sha256        bytea not null check (length(sha256) = 32),
    size_bytes    bigint not null check (size_bytes >= 0),
    -- The stored bytes; null for a file that the zip must have, or that is never served. Checked at the end: deleting an
    -- account deletes its blobs before its deploys' files.
    blob_id       uuid references blobs deferrable initially deferred,
    primary key (deploy_id, path)
);
create index deploy_sources_blob on deploy_sources (blob_id) where blob_id is not null;
