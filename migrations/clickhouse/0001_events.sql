-- Every event of every site. Events are written once and never changed.
--
-- The key begins with the site, because every question is about one; within a site days, then visitors, so that
-- one visitor's events lie together in order of time. Empty values are '' or 0: Nullable costs a file a column.
-- A scroll depth of 255 means it was not measured.
--
-- An insert carries a token; the last 20,000 are remembered, and what comes again under one of them is not
-- written again. Without the setting ClickHouse ignores tokens.
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
