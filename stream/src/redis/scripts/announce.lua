-- Forgets the texts that saved events replace, keeps a mark that refuses late pieces for them, and publishes the news.
-- KEYS: 1 the open texts; then for each sealed step the execution's mark, its answer, its reasoning. ARGV: channel,
-- header, the TTL of what is sealed; then for each step its number and the names of the two texts.
local channel, header, sealed_ttl = ARGV[1], ARGV[2], ARGV[3]
for at = 0, (#ARGV - 3) / 3 - 1 do
  local mark, text, reasoning = KEYS[2 + 3 * at], KEYS[3 + 3 * at], KEYS[4 + 3 * at]
  local step = tonumber(ARGV[4 + 3 * at])
  if step > tonumber(redis.call('HGET', mark, 'sealed') or '-1') then
    redis.call('HSET', mark, 'sealed', step)
  end
  redis.call('PEXPIRE', mark, sealed_ttl)
  redis.call('HDEL', KEYS[1], ARGV[5 + 3 * at], ARGV[6 + 3 * at])
  redis.call('UNLINK', text, reasoning)
end
tell(channel, header, '')
-- Beside texts there are only the epoch and the number. With texts, the newest one's TTL stays.
if redis.call('HLEN', KEYS[1]) <= 2 then
  redis.call('PEXPIRE', KEYS[1], sealed_ttl)
end
return 'accepted'
