-- Adds requests to limits. KEYS: a limit each. ARGV: for each the microseconds after which it has got back what the
-- requests took. Returns for each the microseconds until it has everything back. A key holds the time at which it has.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local refills = {}
for at, key in ipairs(KEYS) do
  local full = math.max(tonumber(redis.call('GET', key) or '0'), now) + tonumber(ARGV[at])
  local left = full - now
  -- A number of this size would be written with an exponent, and lose its last digits.
  redis.call('SET', key, string.format('%.0f', full), 'PX', string.format('%.0f', left / 1000 + 1000))
  refills[at] = left
end
return refills
