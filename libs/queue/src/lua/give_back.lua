-- Puts jobs that were leased but never started back in front.
-- KEYS: waiting running holders wake   ARGV: id and holder in turn
local given = 0
for i = 1, #ARGV, 2 do
  if redis.call('HGET', KEYS[3], ARGV[i]) == ARGV[i + 1] then
    redis.call('ZREM', KEYS[2], ARGV[i])
    redis.call('HDEL', KEYS[3], ARGV[i])
    redis.call('LPUSH', KEYS[1], ARGV[i])
    given = given + 1
  end
end
if given > 0 and redis.call('EXISTS', KEYS[4]) == 0 then
  redis.call('LPUSH', KEYS[4], 1)
end
return given
