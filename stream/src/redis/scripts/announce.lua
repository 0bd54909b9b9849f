-- Forgets the texts that saved events replace, keeps a mark that refuses late pieces for them, and publishes the news.
-- KEYS: 1 the open texts; then for each sealed step the execution's mark. ARGV: channel, header, the TTL of what is
-- sealed, what the keys of texts begin with; then for each step its number and its agent execution.
local channel, header, sealed_ttl, text_prefix = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
for at = 0, (#ARGV - 4) / 2 - 1 do
  local mark, step, agent_execution = KEYS[2 + at], tonumber(ARGV[5 + 2 * at]), ARGV[6 + 2 * at]
  if step > tonumber(redis.call('HGET', mark, 'sealed') or '-1') then
    redis.call('HSET', mark, 'sealed', step)
  end
  redis.call('PEXPIRE', mark, sealed_ttl)
  for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
    local of_step, of_agent = string.match(name, '^(%d+)/[^/]+/(.*)$')
    if tonumber(of_step) == step and of_agent == agent_execution then
      redis.call('HDEL', KEYS[1], name)
      redis.call('UNLINK', text_prefix .. name)
    end
  end
end
tell(channel, header, '')
-- Beside texts there are only the epoch and the number. With texts, the newest one's TTL stays.
if redis.call('HLEN', KEYS[1]) <= 2 then
  redis.call('PEXPIRE', KEYS[1], sealed_ttl)
end
return 'accepted'
