-- Returns jobs that were claimed but never started to the front of the queue.
-- KEYS: waiting running lease_owners notify   ARGV: pairs of id and owner
local returned = 0
for i = 1, #ARGV, 2 do
  if redis.call('HGET', KEYS[3], ARGV[i]) == ARGV[i + 1] then
    redis.call('ZREM', KEYS[2], ARGV[i])
    redis.call('HDEL', KEYS[3], ARGV[i])
    redis.call('LPUSH', KEYS[1], ARGV[i])
    returned = returned + 1
  end
end
if returned > 0 and redis.call('EXISTS', KEYS[4]) == 0 then
  redis.call('LPUSH', KEYS[4], 1)
end
return returned
