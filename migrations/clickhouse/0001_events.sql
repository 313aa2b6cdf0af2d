-- Every event of every site. Events are written once and never changed.
--
-- The key begins with the site, because every query is about one site, then day, then visitor, so that the events
-- of a visitor are adjacent and ordered by time. Empty values are '' or 0, because Nullable costs a file per column.
-- A scroll depth of 255 means that it was not measured.
--
-- Every insert carries a deduplication token. ClickHouse remembers the last 20,000 and ignores repeated inserts.
-- Without the setting it ignores tokens.
CREATE TABLE IF NOT EXISTS events
(
    site_id        UUID,
    account_id     UUID,
    id             UUID,
    received_at    DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
    visitor        UInt64,
    name           LowCardinality(String),
    host           LowCardinality(String),
    path           String CODEC(ZSTD(3)),
    title          String CODEC(ZSTD(3)),
    referrer_host  LowCardinality(String),
    utm_source     LowCardinality(String),
    utm_medium     LowCardinality(String),
    utm_campaign   LowCardinality(String),
    screen         LowCardinality(String),
    props          Map(LowCardinality(String), String),
    engagement_ms  UInt32,
    scroll_depth   UInt8
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(received_at)
ORDER BY (site_id, toDate(received_at), visitor, received_at)
SETTINGS non_replicated_deduplication_window = 20000;
