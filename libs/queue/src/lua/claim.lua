-- Returns jobs with expired leases to the front of the queue, then leases up to ARGV[1] jobs to the owner ARGV[3].
-- KEYS: jobs waiting running notify lease_owners expirations   ARGV: max jobs, lease TTL in ms, owner, max runs
local jobs, waiting, running, notify, lease_owners, expirations = unpack(KEYS)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local dropped = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', running, '-inf', now, 'LIMIT', 0, 100)) do
  redis.call('ZREM', running, id)
  redis.call('HDEL', lease_owners, id)
  if redis.call('HINCRBY', expirations, id, 1) >= tonumber(ARGV[4]) then
    redis.call('HDEL', jobs, id)
    redis.call('HDEL', expirations, id)
    dropped[#dropped + 1] = id
  else
    redis.call('LPUSH', waiting, id)
  end
end

local claimed = {}
while #claimed < tonumber(ARGV[1]) * 2 do
  local id = redis.call('LPOP', waiting)
  if not id then break end
  local job = redis.call('HGET', jobs, id)
  if job then
    redis.call('ZADD', running, now + tonumber(ARGV[2]), id)
    redis.call('HSET', lease_owners, id, ARGV[3])
    claimed[#claimed + 1] = id
    claimed[#claimed + 1] = job
  end
end

if redis.call('EXISTS', waiting) == 1 then
  if redis.call('EXISTS', notify) == 0 then redis.call('LPUSH', notify, 1) end
elseif redis.call('EXISTS', running) == 0 then
  -- Nothing waits or runs: entries that an evicting server left behind must not count as unfinished jobs.
  redis.call('DEL', jobs, lease_owners, expirations)
end
return { claimed, dropped }
