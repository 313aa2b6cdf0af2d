-- Deletes completed jobs, if the lease still has the owner that completed them.
-- KEYS: jobs running lease_owners expirations   ARGV: pairs of id and owner
for i = 1, #ARGV, 2 do
  if redis.call('HGET', KEYS[3], ARGV[i]) == ARGV[i + 1] then
    redis.call('HDEL', KEYS[1], ARGV[i])
    redis.call('ZREM', KEYS[2], ARGV[i])
    redis.call('HDEL', KEYS[3], ARGV[i])
    redis.call('HDEL', KEYS[4], ARGV[i])
  end
end
return #ARGV / 2
