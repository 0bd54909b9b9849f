-- Removes the open texts and their place, when their conversation was removed. The marks, which hold no text, expire.
-- KEYS: 1 the open texts. ARGV: 1 what the keys of texts begin with; they are in the same hash slot.
for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
  redis.call('DEL', ARGV[1] .. name)
end
redis.call('DEL', KEYS[1])
