-- Every question about visits reads both times of each. Their neighbours in a part are other visitors', so that a
-- difference (Delta) packs them no better than leaving out the high bits that all times of a day share (T64): that takes
-- 6 % less room and half the time. An event's neighbours are the same visitor's; there Delta halves the room.
ALTER TABLE sessions
    MODIFY COLUMN start DateTime64(3, 'UTC') CODEC(T64, ZSTD(1)),
    MODIFY COLUMN ended DateTime64(3, 'UTC') CODEC(T64, ZSTD(1));
