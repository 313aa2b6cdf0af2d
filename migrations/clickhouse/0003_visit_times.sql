-- Every query over visits reads both times. Adjacent rows belong to different visitors, so Delta compresses them no
-- better than T64, which omits the high bits that all times of a day share, takes 6 % less space and half the time.
-- Adjacent events belong to the same visitor, and there Delta halves the space.
ALTER TABLE sessions
    MODIFY COLUMN start DateTime64(3, 'UTC') CODEC(T64, ZSTD(1)),
    MODIFY COLUMN ended DateTime64(3, 'UTC') CODEC(T64, ZSTD(1));
