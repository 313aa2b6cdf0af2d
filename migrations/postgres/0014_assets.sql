-- Bytes that users hand in: who refers to which, what is on its way in, and which files a site shows.

-- What the object store holds: one row for the same bytes of one account. The row is written before the bytes, and
-- goes after them.
create table blobs (
    id          uuid primary key,
    account_id  uuid not null references accounts on delete cascade,
    sha256      bytea not null check (length(sha256) = 32),
    size_bytes  bigint not null check (size_bytes >= 0),
    -- When it is looked whether anything still refers to it; null while nothing has let go of it.
    look_at     timestamptz,
    unique (account_id, sha256)
);
create index blobs_look on blobs (look_at) where look_at is not null;
create index blobs_sha256 on blobs (sha256);

-- Bytes of accounts that are gone. No reference: the account is gone already.
create table blob_purges (
    account_id  uuid primary key,
    due_at      timestamptz not null,
    -- When they were first deleted. Something may have been under way, so they are deleted once more.
    deleted_at  timestamptz
);
create index blob_purges_due on blob_purges (due_at);

-- Signed addresses that were given out. The id is that of what the bytes are for.
create table uploads (
    id          uuid primary key,
    account_id  uuid not null references accounts on delete cascade,
    purpose     text not null check (purpose in ('asset', 'deploy')),
    -- As it was said to be; what comes must agree.
    content_type text not null,
    size_bytes  bigint not null check (size_bytes > 0),
    expires_at  timestamptz not null,
    -- Set once: an address takes one upload.
    stored_at   timestamptz,
    created_at  timestamptz not null
);
create index uploads_account on uploads (account_id);
create index uploads_expiry on uploads (expires_at);

-- Files an account keeps for its pages. Its bytes count against the plan from the row's first moment on.
create table assets (
    id            uuid primary key,
    account_id    uuid not null references accounts on delete cascade,
    page_id       uuid references pages on delete set null,
    filename      text not null,
    content_type  text not null,
    size_bytes    bigint not null check (size_bytes > 0),
    -- Null until they are here.
    blob_id       uuid references blobs,
    created_at    timestamptz not null
);
create index assets_account on assets (account_id, created_at, id);
create index assets_page on assets (page_id);
create index assets_blob on assets (blob_id);

-- Sites from a zip. The newest processed one of a subdomain is what its files are served from.
create table deploys (
    id            uuid primary key,
    account_id    uuid not null references accounts on delete cascade,
    subdomain_id  uuid references subdomains on delete cascade,
    status        text not null default 'presigned'
                  check (status in ('presigned', 'uploaded', 'processed', 'rolled_back')),
    size_bytes    bigint not null check (size_bytes > 0),
    -- The zip, between its upload and its processing.
    blob_id       uuid references blobs,
    -- Until when somebody is at it; whoever dies is out of the way then.
    leased_until  timestamptz,
    files_done    int not null default 0,
    files_total   int not null default 0,
    -- Whether its files are still known, so that it can be gone back to.
    has_files     boolean not null default true,
    -- The deploy that was served before this one.
    previous_id   uuid references deploys on delete set null,
    created_at    timestamptz not null,
    processed_at  timestamptz
);
create index deploys_account on deploys (account_id, created_at, id);
create index deploys_subdomain on deploys (subdomain_id, processed_at);
create index deploys_blob on deploys (blob_id);
create index deploys_previous on deploys (previous_id);

-- Which deploy a subdomain's files are served from.
create table served_deploys (
    subdomain_id  uuid primary key references subdomains on delete cascade,
    deploy_id     uuid not null references deploys on delete cascade
);
create index served_deploys_deploy on served_deploys (deploy_id);

-- What a deploy holds beside pages, files it took over from the one before it included.
create table deploy_files (
    deploy_id     uuid not null references deploys on delete cascade,
    path          text not null,
    -- Looked at in the end: an account's end takes its blobs before it comes to its deploys' files.
    blob_id       uuid not null references blobs deferrable initially deferred,
    size_bytes    bigint not null check (size_bytes >= 0),
    content_type  text not null,
    -- Images and fonts have an address by their content too.
    by_content    boolean not null,
    primary key (deploy_id, path)
);
create index deploy_files_blob on deploy_files (blob_id);

-- What a deploy did to each page, and what it was before: so that it can be undone.
create table deploy_pages (
    deploy_id     uuid not null references deploys on delete cascade,
    page_id       uuid not null references pages on delete cascade,
    -- The version to go back to; null if the deploy made the page.
    version_id    uuid,
    primary key (deploy_id, page_id)
);
create index deploy_pages_page on deploy_pages (page_id);
