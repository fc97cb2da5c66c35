-- A holder or a waiter, as a text and as a table. Most commands look at little of it.
--
-- in:       NO_LIMIT sub find expiryOf
-- out:      entries refuse
-- Ends the command, because what stands there is not ours.
local function refuse(where) error({ where = where }) end

-- Functions stand in tables: made anew for each call, they must not cost much to bind.
local entries = {}

-- What a request says: a ttl, a letter (`x` for a plain mutex, else `e` or `s` and more), words.
-- Nothing where it does not.
function entries.read(entry, request)
  local _, stop, owner, client, offer, touch = find(request, '^(%S+) (%S+) (%d+) (%d+) ', 18)
  local letter, weight, limit, span = sub(request, 17, 17), 1, NO_LIMIT, 1
  if not stop or find(request, '%D') ~= 17 then return nil end
  if letter ~= 'x' then
    weight, limit, span = string.match(request, '^(%d+) (%d+) (%d+)', stop + 1)
    weight, limit, span = tonumber(weight), tonumber(limit), tonumber(span)
  end
  entry.request, entry.owner, entry.client = request, owner, client
  entry.ttl, entry.offer, entry.touch = tonumber(sub(request, 1, 16)), tonumber(offer), touch
  entry.weight, entry.limit, entry.span = weight, limit, span
  entry.mode = letter == 's' and 's' or 'x'
  -- More than these digits no client writes, and what is computed of them would not be exact.
  if not weight or #offer > 16 or #touch > 16 then return nil end
  return math.max(weight, limit, span) <= NO_LIMIT and entry or nil
end

-- Another client is told of it from now on.
function entries.inherit(entry, heir)
  local _, stop = find(entry.request, '^%S+ %S+', 18)
  local head = sub(entry.request, 1, 17) .. entry.owner .. ' '
  entry.client, entry.request = heir, head .. heir .. sub(entry.request, stop + 1)
end

-- A holder in one of the forms of the register, or `u`: as `h`, but not confirmed yet.
function entries.holder(text)
  local form = sub(text, 1, 1)
  local start, expiry = form == 'f' and 18 or form == '+' and 34 or 50, expiryOf(text)
  if expiry > NO_LIMIT then refuse('a holder') end
  return {
    text = text, start = start, confirmed = form ~= 'u', expiry = expiry,
    owner = string.match(text, '^%S+', start + 17),
    mode = sub(text, start + 16, start + 16) == 's' and 's' or 'x',
  }
end

-- The rest of what its text says.
function entries.complete(entry)
  if entry.request then return entry end
  local text, start = entry.text, entry.start
  entry.granted = tonumber(sub(text, 2, 17))
  entry.token = start == 18 and entry.granted or tonumber(sub(text, 18, 33))
  return entries.read(entry, sub(text, start)) or refuse('a holder')
end

function entries.text(entry)
  if not entry.text then
    local times = string.format('%016.0f%016.0f%016.0f', entry.granted, entry.token, entry.expiry)
    entry.text, entry.start = (entry.confirmed and 'h' or 'u') .. times .. entry.request, 50
  end
  return entry.text
end
