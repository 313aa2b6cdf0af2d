-- The releases of the schema. The first migration of each release inserts its row, also if nothing else changes. A program
-- refuses a database that is more than one release newer.
set local lock_timeout = '5s';

create table schema_releases (
    release     integer primary key check (release > 0),
    -- As operators know it.
    name        text not null unique,
    applied_at  timestamptz not null default now()
);
insert into schema_releases (release, name) values (1, '0.1');

-- The pepper of the key's fingerprint, by an id that the pepper determines. Null for keys of earlier programs that were not
-- used since: one of the configured peppers.
alter table api_keys add pepper_id text;
