-- Takes jobs from the front of the list until the queue is full; a job already here counts as taken.
-- KEYS: jobs waiting running wake   ARGV: limit, then id and job in turn
local room = tonumber(ARGV[1]) - redis.call('LLEN', KEYS[2]) - redis.call('ZCARD', KEYS[3])
local taken, added = 0, 0
for i = 2, #ARGV, 2 do
  if redis.call('HEXISTS', KEYS[1], ARGV[i]) == 0 then
    if room <= 0 then break end
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
    redis.call('RPUSH', KEYS[2], ARGV[i])
    room = room - 1
    added = added + 1
  end
  taken = taken + 1
end
-- One signal is enough: whoever takes jobs and leaves some signals the next worker.
if added > 0 and redis.call('EXISTS', KEYS[4]) == 0 then
  redis.call('LPUSH', KEYS[4], 1)
end
return taken
