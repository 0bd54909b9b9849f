-- Notes how many streams a holder has open, unless there would be too many. KEYS: a hash each, in which a holder has
-- 'count:version:the millisecond at which it counts no more'. ARGV: 1 the holder, 2 the version, 3 the milliseconds for
-- which it counts, then for each key the count and the most, -1 for any. Returns {0, 0}, or the first key that would
-- have too many, from 1, and how many.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local holder, version, lifetime = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local is_newer = {}
for at, key in ipairs(KEYS) do
  local open, most = tonumber(ARGV[2 + 2 * at]), tonumber(ARGV[3 + 2 * at])
  local known = redis.call('HGETALL', key)
  is_newer[at] = true
  for place = 1, #known, 2 do
    local count, noted, ends = string.match(known[place + 1], '^(%d+):(%d+):(%d+)$')
    if known[place] == holder then
      is_newer[at] = noted == nil or tonumber(noted) <= version
    elseif ends == nil or tonumber(ends) <= now then
      redis.call('HDEL', key, known[place])
    else
      open = open + tonumber(count)
    end
  end
  if most >= 0 and open > most then
    return { at, open }
  end
end
for at, key in ipairs(KEYS) do
  if is_newer[at] then
    local ends = string.format('%.0f', now + lifetime)
    redis.call('HSET', key, holder, ARGV[2 + 2 * at] .. ':' .. ARGV[2] .. ':' .. ends)
    redis.call('PEXPIRE', key, lifetime)
  end
end
return { 0, 0 }
