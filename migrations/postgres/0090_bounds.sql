-- Bounds of what one account or one trial may leave behind.

-- Whether the operator was mailed about a request. Beyond a few an hour they are only stored.
alter table help_requests add mailed boolean not null default true;

-- The size of an archive: its entries as JSON, each with a fixed share for its row, and its template.
alter table entry_archives add bytes bigint not null default 0;
update entry_archives a set bytes = coalesce(octet_length(entry_template), 0)
    + (select coalesce(sum(octet_length(data::text) + 100), 0) from archived_entries where archive_id = a.id);

-- Names of deleted accounts' subdomains. Links to them still exist, so they are not assigned again until then.
create table resting_names (
    name        text primary key,
    kept_until  timestamptz not null
);
create index resting_names_kept_until on resting_names (kept_until);
