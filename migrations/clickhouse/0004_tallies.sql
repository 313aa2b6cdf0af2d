-- The number of a visit's events, engagement reports included, and the sum of their times in milliseconds (modulo
-- 2^32). If the sums over a visitor's visits equal those of the stored events, the visits are complete, and a new event is
-- added without reading the earlier ones. Older rows have neither and are recomputed when a new event arrives. The
-- defaults are explicit for collectors that don't know these columns and insert rows without them.
ALTER TABLE sessions
    ADD COLUMN IF NOT EXISTS steps UInt32 DEFAULT 0,
    ADD COLUMN IF NOT EXISTS times UInt32 DEFAULT 0;
