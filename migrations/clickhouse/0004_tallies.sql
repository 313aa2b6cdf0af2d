-- What a visit is made of: how many events, engagement reports included, and the sum of their times in milliseconds
-- (modulo 2^32). Where those of a visitor's visits add up to what is stored of the visitor, they are whole, and what comes
-- next is added to them without reading what came before. Older rows have neither and are worked out anew when touched.
-- The defaults are written out for collectors that don't know these columns: they may insert rows without them.
ALTER TABLE sessions
    ADD COLUMN IF NOT EXISTS steps UInt32 DEFAULT 0,
    ADD COLUMN IF NOT EXISTS times UInt32 DEFAULT 0;
