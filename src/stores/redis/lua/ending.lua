-- What an owner leaves behind: a tombstone, so that nothing of it that is still under way acts any
-- more, or the mark of work that is done.
--
-- in:       try sub find now write hash refuse
-- commands: GET SET
-- returns:  the functions
local endings = {}

local function read(state, owner)
  local key = hash.companion(state, 't' .. owner)
  local text = try('GET', key)
  if not text then return nil end
  if type(text) == 'table' or find(text, '%D') ~= 17 then refuse('the tombstone of an owner') end
  local untilUs = tonumber(sub(text, 1, 16))
  if untilUs <= now then return nil end
  return { untilUs = untilUs, reason = sub(text, 17, 17) == 'r' and sub(text, 18) }
end

function endings.tombstone(state, owner) return state.buried > now and read(state, owner) or nil end

-- Nothing that is still under way for this owner may act until then. A revocation keeps its reason.
function endings.bury(state, owner, untilUs, reason)
  local before = read(state, owner)
  if before then
    untilUs, reason = math.max(untilUs, before.untilUs), reason or before.reason
  end
  local text = string.format('%016.0f', untilUs) .. (reason and 'r' .. reason or '-')
  write('SET', hash.companion(state, 't' .. owner), text, 'PXAT', hash.endMs(untilUs))
  if untilUs > state.buried then
    state.buried, state.isChanged = untilUs, true
  end
  hash.need(state, untilUs)
end

-- Why an owner holds nothing.
function endings.gone(state, owner)
  local grave = endings.tombstone(state, owner)
  if grave and grave.reason then return 'Ov' .. grave.reason end
  return state.exclusive and 'Or' or 'Om'
end

function endings.putMark(state, token, untilUs, meta)
  state.mark = { token = token, untilUs = untilUs, meta = meta }
  hash.set(state, 'm', string.format('%016.0f%016.0f', untilUs, token) .. meta)
  hash.need(state, untilUs)
end

function endings.dropMark(state)
  state.mark = nil
  hash.set(state, 'm', false)
end

return endings
