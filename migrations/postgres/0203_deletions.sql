-- Release 0.2: which accounts and sites were deleted, by their ids alone. `webruntime backup` copies the rows out of Postgres, so that
-- a restore to an earlier point in time deletes them again. Backups delete rows that are older than all backups.
create table deletions (
    id         bigint generated always as identity primary key,
    account_id uuid not null,
    -- Null for the account with everything.
    site_id    uuid,
    deleted_at timestamptz not null
);
create index deletions_deleted_at on deletions (deleted_at);
