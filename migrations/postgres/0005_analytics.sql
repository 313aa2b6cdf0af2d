-- Sites whose visits are counted, and the salts of visitor ids. The visits themselves are in ClickHouse.

create table analytics_sites (
    id            uuid primary key,
    account_id    uuid not null references accounts on delete cascade,
    -- Stands in the site's pages; no secret.
    site_token    text not null unique,
    name          text not null,
    domain        text,
    -- The subdomain whose pages send events by themselves; at most one site counts a subdomain.
    subdomain_id  uuid unique references subdomains on delete set null,
    created_at    timestamptz not null
);
create index analytics_sites_account on analytics_sites (account_id, created_at, id);

-- One salt per day (UTC), made by whichever collector needs it first, destroyed after two days: from then on
-- nobody can link a visitor id to an address. Leave this table out of backups.
create table salts (
    day   date primary key,
    salt  bytea not null check (length(salt) = 32)
);
