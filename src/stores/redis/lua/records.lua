-- Texts whose fields stand at fixed places: the name of each field, its size in bytes, and its
-- meaning. REST is all that follows. A field that is itself a record brings the fields of that
-- record. Times are microseconds. Times, places, counts and tokens have 16 digits, so that they
-- compare as text.

-- The terms of an acquisition. The client writes them, the script keeps them as they are.
REQUEST = {
  ttl = 16,
  span = 4, -- how many tokens the grant reserves
  letter = 1, -- `x`: exclusive, weight 1, no limit; `e`: exclusive; `s`: shared
  words = REST, -- owner, channel, offer window, touch period, unless `x` weight and limit; meta
}

-- Commands that acquire. A capital operation may wait.
ACQUIRE = {
  operation = 1,
  notAfter = 16, -- the command does nothing after that time
  seen = 16, -- the highest token that the client has seen
  request = REQUEST,
}

-- Commands that renew: `n`, and `m` with an heir.
RENEW = {
  operation = 1,
  notAfter = 16,
  seen = 16,
  ttl = 16,
  words = REST, -- owner, with `m` the channel of the heir
}

-- All other commands.
COMMAND = {
  operation = 1,
  words = REST,
}

-- A holder has one of three forms. In the form `f` the token is the time of the grant, and the
-- expiry follows from the ttl.
FRESH = {
  form = 1,
  granted = 16,
  request = REQUEST,
}

-- In the form `+` the token is given, and the expiry follows from the ttl.
RAISED = {
  form = 1,
  granted = 16,
  token = 16,
  request = REQUEST,
}

MOMENT = {
  second = 10,
  fraction = 6,
}

-- In the form `h` token and expiry are given. `u` is the same for an offer.
FULL = {
  form = 1,
  granted = MOMENT,
  token = 16,
  expiry = 16,
  request = REQUEST,
}

-- In the register, for a name that has a hash of its own.
POINTER = {
  form = 1, -- `=`
  place = REST, -- the place to look at next
}

-- The sums of a name that has a hash of its own.
SUMS = {
  kind = 1, -- `*` if there are shared holders or a mark, else `-`
  bound = 16, -- no client has been silent for too long before that time
  keptUntil = 16, -- when the hash expires
  waiting = 16, -- how many wait
  last = 16, -- the last place that was given
  next = 16, -- the place to look at next
  taken = 16, -- how many places are taken
  lastTombstone = 16, -- when the last tombstone expires
}

-- The name of the field that has a waiter.
WAITER_FIELD = {
  letter = 1, -- `w`
  place = 16,
}

WAITER = {
  since = 16,
  request = REQUEST,
}

-- A client that waits.
CLIENT = {
  gone = 16, -- from that time on it has been silent for too long
  touch = 16, -- how often it speaks, at least
  base = 16, -- the last place that was given before the client came
  passed = 16, -- the first place where the client was passed over as suspect, or 0
  waiting = 16, -- how many waiters it has
  state = 1, -- `a`: alive, `s`: suspect
}

MARK = {
  keptUntil = 16,
  token = 16,
  meta = REST,
}

TOMBSTONE = {
  keptUntil = 16,
  kind = 1, -- `r`: the owner was revoked, else `-`
  reason = REST,
}

-- Shared holders in the sorted set `e`, where the score is the expiry.
BY_EXPIRY = {
  token = 16,
  owner = REST,
}

-- The same holders in `e`, where the score says the token.
BY_TOKEN = {
  letter = 1, -- `t`
  owner = REST,
}
