-- How a site's visits are counted, the salts behind its longer-lived visitor ids, and what was not counted.

alter table analytics_sites
    -- An IANA name: where the site's days begin.
    add column timezone            text not null default 'UTC',
    -- Whether `DNT: 1` and `Sec-GPC: 1` keep a visitor out.
    add column honour_dnt          boolean not null default true,
    -- How long the id lives by which a returning visitor is known, for retention alone.
    add column visitor_id_lifetime text not null default 'month'
        check (visitor_id_lifetime in ('day', 'week', 'month', 'quarter'));

-- One salt per site and stretch of `visitor_id_lifetime`, destroyed when that is over: from then on nobody can tell
-- that two visits were one person's. Leave this table out of backups, as `salts`.
create table retention_salts (
    site_id  uuid not null references analytics_sites on delete cascade,
    -- The stretch's first day, where the site is.
    epoch    date not null,
    ends_at  timestamptz not null,
    salt     bytea not null check (length(salt) = 32),
    primary key (site_id, epoch)
);
create index retention_salts_ends_at on retention_salts (ends_at);

-- Events that were not counted, by reason and hour, kept for a day.
create table event_drops (
    site_id  uuid not null references analytics_sites on delete cascade,
    hour     timestamptz not null,
    reason   text not null,
    count    bigint not null check (count > 0),
    primary key (site_id, hour, reason)
);
create index event_drops_hour on event_drops (hour);
