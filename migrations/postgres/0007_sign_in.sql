-- Who signs in, whose an account is, and which browser belongs to whom.

create table identities (
    id              uuid primary key,
    -- Who vouches for it, and under which name. Never the e-mail: two providers may know the same one.
    issuer          text not null,
    subject         text not null,
    email           text,
    email_verified  boolean not null,
    name            text,
    created_at      timestamptz not null,
    unique (issuer, subject)
);

-- An identity may hold several accounts; an account is one identity's.
create table identity_accounts (
    account_id        uuid primary key references accounts on delete cascade,
    identity_id       uuid not null references identities,
    -- Moved here from `accounts` by the claim, so that a link which was used can say so.
    claim_token_hash  bytea unique,
    added_at          timestamptz not null,
    unique (identity_id, account_id)
);

create table sessions (
    id            uuid primary key,
    -- SHA-256 of the cookie's token, which is nowhere else.
    token_hash    bytea not null unique,
    identity_id   uuid not null references identities,
    -- The account it works on.
    account_id    uuid,
    created_at    timestamptz not null,
    last_seen_at  timestamptz not null,
    -- Moves on with use, but never past `ends_at`.
    expires_at    timestamptz not null,
    ends_at       timestamptz not null,
    -- Only ever one of the identity's own accounts. When that account goes, the session stays without one.
    foreign key (identity_id, account_id) references identity_accounts (identity_id, account_id)
        on delete set null (account_id)
);
create index sessions_account on sessions (identity_id, account_id);
create index sessions_expiry on sessions (expires_at);

-- Somebody was sent to a provider and has not come back yet.
create table sign_ins (
    -- SHA-256 of the `state` parameter.
    state_hash     bytea primary key,
    -- SHA-256 of the cookie of the browser that began it: nobody else's can finish it.
    browser_hash   bytea not null,
    provider       text not null,
    -- Nonce, PKCE verifier and the way back, sealed: the way back may hold a claim token.
    sealed         bytea not null,
    expires_at     timestamptz not null
);
create index sign_ins_expiry on sign_ins (expires_at);
