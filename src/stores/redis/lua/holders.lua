-- The holders of a name: one exclusive holder, or any number of shared ones (shared.lua).
--
-- in:       hash
-- out:      shared holders
local sharedPart

local function shared()
  if not sharedPart then
    sharedPart = (function()
      include('shared')
    end)()
  end
  return sharedPart
end

local holders = {}

function holders.of(state, owner)
  local exclusive = state.exclusive
  if exclusive and exclusive.owner == owner then return exclusive end
  return state.count > 0 and shared().of(state, owner) or nil
end

-- The holder that expires first.
function holders.next(state)
  if state.exclusive or state.count == 0 then return state.exclusive end
  return shared().next(state)
end

function holders.put(state, entry)
  entry.text, entry.isNew = nil, true
  hash.need(state, entry.expiry)
  if entry.mode == 's' then return shared().put(state, entry) end
  state.exclusive = entry
end

function holders.update(state, entry, confirms)
  entry.text, entry.isNew = nil, true
  hash.need(state, entry.expiry)
  if entry.mode == 's' then shared().update(state, entry, confirms) end
end

function holders.drop(state, entry)
  if entry.mode == 's' then return shared().drop(state, entry) end
  state.exclusive, state.isVacated = nil, true
end
