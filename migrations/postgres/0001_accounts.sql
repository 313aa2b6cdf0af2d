-- Who uses the system, by which keys, and how much of their plan is used.

create table accounts (
    id                uuid primary key,
    plan              text not null default 'free' check (plan in ('free', 'pro', 'scale')),
    name              text,
    timezone          text not null default 'UTC',
    -- Null once claimed. Only a hash of the claim token exists here.
    claim_token_hash  bytea unique,
    claim_deadline    timestamptz,
    claimed_at        timestamptz,
    suspended_at      timestamptz,
    created_at        timestamptz not null
);

-- Counters change in the transaction of the resource they count, guarded by the plan's limit.
create table usage (
    account_id     uuid primary key references accounts on delete cascade,
    projects       bigint not null default 0 check (projects >= 0),
    webhooks       bigint not null default 0 check (webhooks >= 0),
    domains        bigint not null default 0 check (domains >= 0),
    subdomains     bigint not null default 0 check (subdomains >= 0),
    storage_bytes  bigint not null default 0 check (storage_bytes >= 0)
);

create table api_keys (
    id            uuid primary key,
    account_id    uuid not null references accounts on delete cascade,
    -- HMAC-SHA-256 of the key under the server's pepper; the key itself is nowhere.
    fingerprint   bytea not null unique,
    shown_prefix  text not null,
    label         text not null,
    scopes        text[] not null,
    expires_at    timestamptz,
    revoked_at    timestamptz,
    last_used_at  timestamptz,
    created_at    timestamptz not null
);
create index api_keys_account on api_keys (account_id);

create table subdomains (
    id          uuid primary key,
    account_id  uuid not null references accounts on delete cascade,
    name        text not null unique,
    created_at  timestamptz not null
);
create index subdomains_account on subdomains (account_id, created_at);
