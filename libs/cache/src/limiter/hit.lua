-- Counts one hit in every window, unless one of them is full; answers the counts before it.
-- KEYS: a counter for each window   ARGV: for each, its limit and its life in ms
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
