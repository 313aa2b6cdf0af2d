-- Puts lapsed jobs back in front, then leases up to ARGV[1] jobs to the holder ARGV[3].
-- KEYS: jobs waiting running wake holders lapses   ARGV: most, lease in ms, holder, most runs
local jobs, waiting, running, wake, holders, lapses = unpack(KEYS)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local dropped = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', running, '-inf', now, 'LIMIT', 0, 100)) do
  redis.call('ZREM', running, id)
  redis.call('HDEL', holders, id)
  if redis.call('HINCRBY', lapses, id, 1) >= tonumber(ARGV[4]) then
    redis.call('HDEL', jobs, id)
    redis.call('HDEL', lapses, id)
    dropped[#dropped + 1] = id
  else
    redis.call('LPUSH', waiting, id)
  end
end

local taken = {}
while #taken < tonumber(ARGV[1]) * 2 do
  local id = redis.call('LPOP', waiting)
  if not id then break end
  local job = redis.call('HGET', jobs, id)
  if job then
    redis.call('ZADD', running, now + tonumber(ARGV[2]), id)
    redis.call('HSET', holders, id, ARGV[3])
    taken[#taken + 1] = id
    taken[#taken + 1] = job
  end
end

if redis.call('EXISTS', waiting) == 1 then
  if redis.call('EXISTS', wake) == 0 then redis.call('LPUSH', wake, 1) end
elseif redis.call('EXISTS', running) == 0 then
  -- Nothing waits or runs: what an evicting server left of the rest must not pass for unfinished jobs.
  redis.call('DEL', jobs, holders, lapses)
end
return { taken, dropped }
