-- Folders, what a key is kept to, names that were given up, custom domains, and words to the operator.

create table folders (
    id           uuid primary key,
    account_id   uuid not null references accounts on delete cascade,
    name         text not null,
    description  text,
    created_at   timestamptz not null,
    updated_at   timestamptz not null
);
create index folders_account on folders (account_id, created_at, id);

alter table forms add folder_id uuid references folders on delete set null;
create index forms_folder on forms (folder_id);
alter table pages add folder_id uuid references folders on delete set null;
create index pages_folder on pages (folder_id);
alter table analytics_sites add folder_id uuid references folders on delete set null;
create index analytics_sites_folder on analytics_sites (folder_id);

alter table api_keys
    -- The one folder it may touch. Not a reference: were the folder's end to clear it, the key would grow.
    add folder_id     uuid,
    -- The only things of a kind it may touch: {"forms": ["…"]}. A kind that isn't named is not narrowed.
    add resource_ids  jsonb not null default '{}',
    -- The key that made it. Revoking a key revokes its descendants.
    add parent_id     uuid references api_keys on delete cascade,
    add rotated_at    timestamptz;
create index api_keys_parent on api_keys (parent_id);

-- Names subdomains gave up. They answer with a redirect and stay their account's until then.
create table former_names (
    name          text primary key,
    account_id    uuid not null references accounts on delete cascade,
    subdomain_id  uuid not null references subdomains on delete cascade,
    renamed_at    timestamptz not null,
    kept_until    timestamptz not null
);
create index former_names_account on former_names (account_id, renamed_at);
create index former_names_subdomain on former_names (subdomain_id);

create table domains (
    id               uuid primary key,
    account_id       uuid not null references accounts on delete cascade,
    subdomain_id     uuid not null references subdomains on delete cascade,
    -- Lower case, punycode.
    domain           text not null,
    status           text not null default 'pending' check (status in ('pending', 'active', 'failed')),
    dns_status       text not null default 'pending' check (dns_status in ('pending', 'verified', 'failed')),
    ssl_status       text not null default 'pending'
                     check (ssl_status in ('pending', 'issuing', 'active', 'failed')),
    -- What the owner must publish in the domain's DNS to show that it is theirs.
    challenge        text not null,
    error            text,
    last_checked_at  timestamptz,
    created_at       timestamptz not null,
    unique (account_id, domain)
);
create index domains_subdomain on domains (subdomain_id);
-- Anybody may claim a domain; only whoever has shown that it is theirs holds it.
create unique index domains_held on domains (domain) where dns_status = 'verified';

create table help_requests (
    id          uuid primary key,
    account_id  uuid not null references accounts on delete cascade,
    category    text not null,
    subject     text not null,
    message     text not null,
    email       text,
    url         text,
    severity    text,
    created_at  timestamptz not null
);
create index help_requests_account on help_requests (account_id, created_at);
