-- What is known about an event's visitor, visits (sessions) as whole rows, and who returned on which day.
--
-- `previous` is the visitor's id under yesterday's salt, known only of events received within 30 minutes after
-- midnight (UTC), else 0: it alone lets a visit survive midnight.
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

-- One row a visit, worked out anew from the stored events whenever a batch touches it; read with FINAL. The row
-- that saw more of the visitor's events has the higher version and wins, whoever wrote it and how often; a row that
-- a late event made wrong is written again as deleted. So nothing here has to happen exactly once.
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

-- For retention alone: who did what on which of the site's days, under an id that lives longer than a day. No daily
-- id, no address and no time of day, so that the two ids can't be brought together. `epoch` is the first day of the
-- salt behind the id: ids of different epochs can't be compared.
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
