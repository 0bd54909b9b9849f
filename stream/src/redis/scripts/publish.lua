-- Refuses or appends a piece of a text, and publishes it (invariant 7, fenced deltas). Returns 'accepted', 'refused',
-- 'gap' or 'behind'. KEYS: 1 the open texts, 2 the mark of the agent execution, 3 this text.
local channel, text, header = ARGV[1], ARGV[2], ARGV[3]
local header_emptied, part_of_emptied = ARGV[4], ARGV[5]
local field, message_id, agent_execution = ARGV[6], ARGV[7], ARGV[8]
local generation, step, offset, is_end = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11]), ARGV[12]
-- What the caller has seen of this agent execution. It restores a mark that Redis has lost.
local known_generation, known_sealed = tonumber(ARGV[13]), tonumber(ARGV[14])
local text_ttl, mark_ttl = ARGV[15], ARGV[16]
local max_bytes, max_open, text_prefix = tonumber(ARGV[17]), tonumber(ARGV[18]), ARGV[19]
local continues = ARGV[20] == '1'

local function remember(newest, sealed)
  redis.call('HSET', KEYS[2], 'generation', newest, 'sealed', sealed)
  redis.call('PEXPIRE', KEYS[2], mark_ttl)
end

-- The generation of an open text, or nil. Its entry may outlive its text, which expires by itself.
local function generation_of(name, key)
  local entry = redis.call('HGET', KEYS[1], name)
  return entry and redis.call('EXISTS', key) == 1 and tonumber(string.match(entry, '^%d+')) or nil
end

local function enter(name, ended, number)
  redis.call('HSET', KEYS[1], name, generation .. '/' .. ended .. '/' .. number .. '/' .. message_id)
  redis.call('PEXPIRE', KEYS[1], text_ttl)
end

-- Empties the step's texts of an older generation, also the parts that the piece is not for: when a retry begins with
-- reasoning, the answer of the first try must not stay on the readers' screens. A piece at offset 0 starts its own text
-- itself.
local function begin_anew()
  for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
    local of_step, part, of_agent = string.match(name, '^(%d+)/([^/]+)/(.*)$')
    if tonumber(of_step) == step and of_agent == agent_execution and (name ~= field or offset > 0) then
      local key = text_prefix .. name
      local older = generation_of(name, key)
      if older and older < generation then
        redis.call('SET', key, '', 'PX', text_ttl)
        local from, to = string.find(header_emptied, part_of_emptied, 1, true)
        local word = '"part":"' .. part .. '"'
        local emptied = string.sub(header_emptied, 1, from - 1) .. word .. string.sub(header_emptied, to + 1)
        enter(name, '0', tell(channel, emptied, ''))
      end
    end
  end
end

-- Forgets the texts touched longest ago; their writers publish them again.
local function forget_surplus()
  local names = redis.call('HKEYS', KEYS[1])
  if #names - 2 <= max_open then
    return
  end
  local others = {}
  for _, name in ipairs(names) do
    if string.sub(name, 1, 1) ~= '#' and name ~= field then
      local entry = redis.call('HGET', KEYS[1], name)
      table.insert(others, { name, tonumber(string.match(entry, '^%d+/%d/(%d+)')) })
    end
  end
  table.sort(others, function(one, two) return one[2] < two[2] end)
  for at = 1, #others + 1 - max_open do
    redis.call('HDEL', KEYS[1], others[at][1])
    redis.call('UNLINK', text_prefix .. others[at][1])
  end
end

local mark = redis.call('HMGET', KEYS[2], 'generation', 'sealed')
local newest = math.max(tonumber(mark[1] or '0'), known_generation)
local sealed = math.max(tonumber(mark[2] or '-1'), known_sealed)
if step <= sealed or generation < newest then
  remember(newest, sealed)
  return 'refused'
end
-- A text that continues that of an older generation must not be shorter than what readers have been shown of it.
if continues and offset == 0 then
  local shown = generation_of(field, KEYS[3])
  if shown and shown < generation and redis.call('STRLEN', KEYS[3]) > #text then
    return 'behind'
  end
end
remember(generation, sealed)
if not continues then
  begin_anew()
end
if offset + #text > max_bytes then
  return 'refused'
end
if offset == 0 then
  redis.call('SET', KEYS[3], text, 'PX', text_ttl)
elseif generation_of(field, KEYS[3]) == generation and redis.call('STRLEN', KEYS[3]) == offset then
  redis.call('APPEND', KEYS[3], text)
  redis.call('PEXPIRE', KEYS[3], text_ttl)
else
  return 'gap'
end
enter(field, is_end, tell(channel, header, text))
if offset == 0 then
  forget_surplus()
end
return 'accepted'
