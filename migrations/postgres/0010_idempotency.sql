-- Calls made under an `Idempotency-Key`: who is at them now, and how those that ended were answered.

create table idempotent_calls (
    account_id    uuid not null references accounts on delete cascade,
    -- Of credential, route and key, under a key of ours: neither of them can be read from it, or guessed.
    fingerprint   bytea not null check (length(fingerprint) = 32),
    -- Whoever carries it out, and until when the others leave it to them.
    attempt       uuid not null,
    leased_until  timestamptz not null,
    -- Answer and digest of the request, sealed under the caller's key. Null while it is carried out.
    answer        bytea,
    created_at    timestamptz not null,
    primary key (account_id, fingerprint)
);
create index idempotent_calls_created on idempotent_calls (created_at);
