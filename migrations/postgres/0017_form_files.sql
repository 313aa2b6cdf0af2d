-- Files that visitors hand in with a form: on their way at first, then of one submission for good.

create table form_files (
    -- All 128 bits are random: whoever knows it may hand the file in, and its form's owner's readers may fetch it.
    id             uuid primary key,
    account_id     uuid not null references accounts on delete cascade,
    form_id        uuid not null references forms on delete cascade,
    -- The field it was sent for; it answers no other.
    field          text not null,
    filename       text not null,
    content_type   text not null,
    size_bytes     bigint not null check (size_bytes > 0),
    -- Keyed digest of who sends it: of an address alone nothing is kept.
    visitor        bytea not null,
    -- Null until the bytes are here. Looked at in the end: an account's end may take its blobs first.
    blob_id        uuid references blobs deferrable initially deferred,
    -- Set once. Until then the bytes count against an allowance, and go after a day.
    submission_id  uuid references submissions on delete cascade,
    -- Whether its bytes stand in the account's storage_bytes: those of spam don't.
    is_counted     boolean not null default false,
    created_at     timestamptz not null
);
create index form_files_account on form_files (account_id);
create index form_files_submission on form_files (submission_id);
create index form_files_form on form_files (form_id, submission_id);
create index form_files_visitor on form_files (visitor) where submission_id is null;
create index form_files_unbound on form_files (created_at) where submission_id is null;
create index form_files_blob on form_files (blob_id);

-- Submissions end in many ways, and with them their files: by whoever deletes them, with their form, with their
-- account. Whatever the way, the bytes are given back here, so that no way can forget it.
create function let_go_of_form_files() returns trigger language plpgsql as $$
begin
    update usage set storage_bytes = storage_bytes - given.bytes
    from (select account_id, sum(size_bytes)::bigint as bytes from gone where is_counted group by account_id) as given
    where usage.account_id = given.account_id;
    update blobs set look_at = now() where id in (
        select id from blobs where id in (select blob_id from gone) order by sha256 for update);
    return null;
end $$;
create trigger form_files_gone after delete on form_files
    referencing old table as gone for each statement execute function let_go_of_form_files();

alter table uploads drop constraint uploads_purpose_check;
alter table uploads add constraint uploads_purpose_check check (purpose in ('asset', 'deploy', 'form_file'));
