-- Counts one hit in every window unless one of them is full. Returns the counts before the hit.
-- KEYS: the counter of each window   ARGV: the limit and the TTL in ms of each window
local counts, full = {}, false
for i, key in ipairs(KEYS) do
  counts[i] = tonumber(redis.call('GET', key) or 0)
  full = full or counts[i] >= tonumber(ARGV[i * 2 - 1])
end
if not full then
  for i, key in ipairs(KEYS) do
    if redis.call('INCR', key) == 1 then redis.call('PEXPIRE', key, ARGV[i * 2]) end
  end
end
return counts
