-- Accepts jobs from the front of the list until the queue is full. A job that is already queued counts as accepted.
-- KEYS: jobs waiting running notify   ARGV: max_jobs, then pairs of id and job
local free = tonumber(ARGV[1]) - redis.call('LLEN', KEYS[2]) - redis.call('ZCARD', KEYS[3])
local accepted, added = 0, 0
for i = 2, #ARGV, 2 do
  if redis.call('HEXISTS', KEYS[1], ARGV[i]) == 0 then
    if free <= 0 then break end
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
    redis.call('RPUSH', KEYS[2], ARGV[i])
    free = free - 1
    added = added + 1
  end
  accepted = accepted + 1
end
-- One notification is enough: a worker that leaves jobs waiting notifies the next worker.
if added > 0 and redis.call('EXISTS', KEYS[4]) == 0 then
  redis.call('LPUSH', KEYS[4], 1)
end
return accepted
