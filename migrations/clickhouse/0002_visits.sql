-- Properties of an event's visitor, visits (sessions) as whole rows, and returning visitors by day.
--
-- `previous` is the visitor's id under the salt of the day before. It is set only for events received within 30
-- minutes after midnight (UTC), otherwise 0. Only with it a visit can continue past midnight.
ALTER TABLE events
    ADD COLUMN IF NOT EXISTS previous UInt64,
    ADD COLUMN IF NOT EXISTS source   LowCardinality(String),
    ADD COLUMN IF NOT EXISTS channel  LowCardinality(String),
    ADD COLUMN IF NOT EXISTS country  LowCardinality(String),
    ADD COLUMN IF NOT EXISTS region   LowCardinality(String),
    ADD COLUMN IF NOT EXISTS city     LowCardinality(String),
    ADD COLUMN IF NOT EXISTS device   LowCardinality(String),
    ADD COLUMN IF NOT EXISTS browser  LowCardinality(String),
    ADD COLUMN IF NOT EXISTS os       LowCardinality(String);

-- One row per visit, recomputed from the stored events whenever a batch contains some of them. Read it with FINAL. The
-- row computed from more of the visitor's events has the higher version and wins, regardless of the order of writes. A
-- row that a late event invalidates is written again as deleted. So writes need not happen exactly once.
CREATE TABLE IF NOT EXISTS sessions
(
    site_id        UUID,
    account_id     UUID,
    visitor        UInt64,
    start          DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
    ended          DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
    page_views     UInt32,
    events         UInt32,
    bounce         UInt8,
    entry_host     LowCardinality(String),
    entry_path     String CODEC(ZSTD(3)),
    exit_path      String CODEC(ZSTD(3)),
    referrer_host  LowCardinality(String),
    source         LowCardinality(String),
    channel        LowCardinality(String),
    utm_source     LowCardinality(String),
    utm_medium     LowCardinality(String),
    utm_campaign   LowCardinality(String),
    country        LowCardinality(String),
    region         LowCardinality(String),
    city           LowCardinality(String),
    device         LowCardinality(String),
    browser        LowCardinality(String),
    os             LowCardinality(String),
    engagement_ms  UInt32,
    version        UInt64,
    deleted        UInt8
)
ENGINE = ReplacingMergeTree(version, deleted)
PARTITION BY toYYYYMM(start)
ORDER BY (site_id, toDate(start), visitor, start);

-- For retention only: the events of visitors by day of the site, under an id that lives longer than a day. Contains no
-- daily id, no address and no time of day, so that the two ids can't be linked. `epoch` is the first day of the salt
-- behind the id. Ids of different epochs can't be compared.
CREATE TABLE IF NOT EXISTS returns
(
    site_id     UUID,
    account_id  UUID,
    returner    UInt64,
    name        LowCardinality(String),
    day         Date,
    epoch       Date
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (site_id, name, day, returner);
