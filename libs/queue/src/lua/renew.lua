-- Extends the leases that still have their owner; returns the number of leases that were lost.
-- KEYS: running lease_owners   ARGV: lease TTL in ms, then pairs of id and owner
local time = redis.call('TIME')
local deadline = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[1])
local lost = 0
for i = 2, #ARGV, 2 do
  if redis.call('HGET', KEYS[2], ARGV[i]) == ARGV[i + 1] then
    redis.call('ZADD', KEYS[1], 'XX', deadline, ARGV[i])
  else
    lost = lost + 1
  end
end
return lost
