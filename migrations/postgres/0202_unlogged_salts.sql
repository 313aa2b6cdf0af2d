-- Release 0.2: the salts of visitor ids stay out of backups, of the write-ahead log and of standbys, which have no rows of unlogged
-- tables. A crash of Postgres, a failover and a restore empty them; collectors then restore the salts from their own memory or
-- from sealed copies in Redis (collector/docs/0011-copies-of-salts.md).
set local lock_timeout = '5s';

alter table salts set unlogged;
alter table retention_salts set unlogged;

-- Which salts were made and not destroyed yet, without the salts: a row here without one there tells a lost salt from a new one.
create table issued_salts (
    day date primary key
);
create table issued_retention_salts (
    site_id uuid not null references analytics_sites on delete cascade,
    epoch   date not null,
    ends_at timestamptz not null,
    primary key (site_id, epoch)
);
create index issued_retention_salts_ends_at on issued_retention_salts (ends_at);

insert into issued_salts select day from salts;
insert into issued_retention_salts select site_id, epoch, ends_at from retention_salts;
