-- Publishes a message with its place: an epoch and a number. The epoch says when counting began. Numbers have no gaps.
-- After a flush or an expiry, the number begins at 1 in a new epoch. By both, followers find out that they have missed
-- something. KEYS[1] is the hash of the conversation's open texts. Returns the number.
local function tell(channel, header, text)
  local epoch = redis.call('HGET', KEYS[1], '#epoch')
  if not epoch then
    local now = redis.call('TIME')
    epoch = now[1] .. string.format('%06d', now[2])
    redis.call('HSET', KEYS[1], '#epoch', epoch)
  end
  local number = redis.call('HINCRBY', KEYS[1], '#number', 1)
  redis.call('PUBLISH', channel, epoch .. ' ' .. number .. ' ' .. header .. '\n' .. text)
  return number
end
