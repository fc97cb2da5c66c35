-- The traces of an owner that is gone: a tombstone, so that a command of the owner that is still
-- under way does nothing, or the mark of a `once` whose work is done.
--
-- in:       try sub find now write hash refuse
-- commands: GET SET
-- returns:  the functions
local endings = {}

local function read(state, owner)
  local text = try('GET', hash.companion(state, 't' .. owner))
  if not text then return nil end
  if type(text) == 'table' or find(text, '%D') ~= TOMBSTONE.kind.start then
    refuse('the tombstone of an owner')
  end
  local keptUntil = tonumber(sub(text, TOMBSTONE.keptUntil))
  if keptUntil <= now then return nil end
  local isRevoked = sub(text, TOMBSTONE.kind) == 'r'
  return { keptUntil = keptUntil, reason = isRevoked and sub(text, TOMBSTONE.reason) }
end

function endings.tombstone(state, owner)
  return state.lastTombstone > now and read(state, owner) or nil
end

-- Until this time no command of the owner acts. The reason of a revocation stays.
function endings.putTombstone(state, owner, keptUntil, reason)
  local before = read(state, owner)
  if before then
    keptUntil, reason = math.max(keptUntil, before.keptUntil), reason or before.reason
  end
  local text = string.format('%016.0f', keptUntil) .. (reason and 'r' .. reason or '-')
  write('SET', hash.companion(state, 't' .. owner), text, 'PXAT', hash.endMs(keptUntil))
  if keptUntil > state.lastTombstone then
    state.lastTombstone, state.isChanged = keptUntil, true
  end
  hash.need(state, keptUntil)
end

-- The reply that says why an owner holds nothing.
function endings.gone(state, owner)
  local tombstone = endings.tombstone(state, owner)
  if tombstone and tombstone.reason then return 'Ov' .. tombstone.reason end
  return state.exclusive and 'Or' or 'Om'
end

function endings.putMark(state, token, keptUntil, meta)
  state.mark = { token = token, keptUntil = keptUntil, meta = meta }
  hash.set(state, 'm', string.format('%016.0f%016.0f', keptUntil, token) .. meta)
  hash.need(state, keptUntil)
end

function endings.dropMark(state)
  state.mark = nil
  hash.set(state, 'm', false)
end

return endings
