-- Segments of a collector whose events were charged to their account's month after they had been held back, because
-- Postgres could not say in time whose they were. A collector that is killed in between does it all again; the row keeps
-- the second time from counting. Kept for three months.
create table held_charges (
    segment_id  uuid not null,
    account_id  uuid not null references accounts on delete cascade,
    charged_at  timestamptz not null,
    primary key (segment_id, account_id)
);
create index held_charges_account_id on held_charges (account_id);
create index held_charges_charged_at on held_charges (charged_at);
