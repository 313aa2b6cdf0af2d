-- The end of things: what finds expired trials, what ClickHouse must still forget, and why an account is suspended.

alter table accounts add suspension_reason text;
create index accounts_unclaimed on accounts (claim_deadline) where claimed_at is null;

-- An account's end follows these references backwards; without an index each would read the whole table.
create index submissions_account on submissions (account_id);
create index deliveries_account on deliveries (account_id);

-- Events that must go from ClickHouse. No references: what the events belonged to is gone already.
create table event_purges (
    id          bigint generated always as identity primary key,
    account_id  uuid not null,
    -- Null: the events of all its sites.
    site_id     uuid,
    due_at      timestamptz not null,
    -- When ClickHouse first said that they are gone. A collector may have held some back then, so they are
    -- deleted once more, and then the row goes.
    deleted_at  timestamptz,
    created_at  timestamptz not null
);
create index event_purges_due on event_purges (due_at);
