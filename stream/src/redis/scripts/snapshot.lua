-- The place and every open text, at one moment: {epoch, number, {name, entry, text}, …}. Writes nothing.
-- KEYS: 1 the open texts. ARGV: 1 what the keys of texts begin with; they are in the same hash slot.
local entries = redis.call('HGETALL', KEYS[1])
local epoch, number, open = '0', '0', {}
for at = 1, #entries, 2 do
  local name, entry = entries[at], entries[at + 1]
  if name == '#epoch' then
    epoch = entry
  elseif name == '#number' then
    number = entry
  else
    local text = redis.call('GET', ARGV[1] .. name)
    if text then
      table.insert(open, { name, entry, text })
    end
  end
end
return { epoch, number, open }
