-- A holder or a waiter, as a text and as a table. Most commands need little of it.
--
-- in:       NO_LIMIT sub find expiryOf
-- out:      entries refuse
-- Ends the command: the data at this place is foreign.
local function refuse(where) error({ where = where }) end

-- Functions stand in tables, because a function that is made for each call should bind little.
local entries = {}

-- Adds the fields of a REQUEST to an entry. Nil if the request cannot be read.
function entries.read(entry, request)
  local pattern = '^(%S+) (%S+) (%d+) (%d+) '
  local _, stop, owner, client, offer, touch = find(request, pattern, REQUEST.words)
  local letter, weight, limit = sub(request, REQUEST.letter), 1, NO_LIMIT
  if not stop or find(request, '%D') ~= REQUEST.letter.start then return nil end
  if letter ~= 'x' then
    weight, limit = string.match(request, '^(%d+) (%d+)', stop + 1)
    weight, limit = tonumber(weight), tonumber(limit)
  end
  entry.request, entry.owner, entry.client = request, owner, client
  entry.ttl, entry.offer, entry.touch = tonumber(sub(request, REQUEST.ttl)), tonumber(offer), touch
  entry.weight, entry.limit, entry.span = weight, limit, tonumber(sub(request, REQUEST.span))
  entry.mode = letter == 's' and 's' or 'x'
  -- Clients write at most 16 digits; the sums of longer numbers would not be exact.
  if not weight or #offer > 16 or #touch > 16 then return nil end
  return math.max(weight, limit) <= NO_LIMIT and entry or nil
end

-- From now on messages about the entry go to the channel of the heir.
function entries.inherit(entry, heir)
  local _, stop = find(entry.request, '^%S+ %S+', REQUEST.words)
  local head = sub(entry.request, REQUEST.ttl.to.letter) .. entry.owner .. ' '
  entry.client, entry.request = heir, head .. heir .. sub(entry.request, stop + 1)
end

-- A holder that `isOurs` accepted, with the fields that most commands need.
function entries.holder(text)
  local form, expiry = sub(text, FULL.form), expiryOf(text)
  local start = form == 'f' and FRESH.request.start or form == '+' and RAISED.request.start
    or FULL.request.start
  local letter = start + REQUEST.letter.before
  if expiry > NO_LIMIT then refuse('a holder') end
  return {
    text = text, start = start, confirmed = form ~= 'u', expiry = expiry,
    owner = string.match(text, '^%S+', start + REQUEST.words.before),
    mode = sub(text, letter, letter) == 's' and 's' or 'x',
  }
end

-- Adds the other fields of a holder.
function entries.complete(entry)
  if entry.request then return entry end
  local text, start = entry.text, entry.start
  entry.granted = tonumber(sub(text, FULL.granted))
  entry.token = start == FRESH.request.start and entry.granted or tonumber(sub(text, FULL.token))
  return entries.read(entry, sub(text, start)) or refuse('a holder')
end

function entries.text(entry)
  if not entry.text then
    local times = string.format('%016.0f%016.0f%016.0f', entry.granted, entry.token, entry.expiry)
    entry.text = (entry.confirmed and 'h' or 'u') .. times .. entry.request
    entry.start = FULL.request.start
  end
  return entry.text
end
