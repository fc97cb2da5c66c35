-- Texts whose fields stand at fixed places: the name of each field, its size in bytes, and its
-- meaning. REST is all that follows. Ballots are microseconds and have 16 digits, other times are
-- milliseconds and have 13, so that they compare as text.

-- The marker of a node: see node-rules.ts.
MARKER = {
  top = 16, -- no ballot that the node voted for is above it
  max = 13, -- the longest lease that the node votes for
  state = 1, -- `v`: a vote depends on the length of the lease alone; `n`: on more
  id = 16, -- of the set of nodes
  run = 40, -- the process that the marker was written for
  floor = 16, -- a name without a ballot counts as if it had this one; dashes: yet to be learned
  from = 13, -- the node does not vote before that time
  long = 13, -- leases may be that long
  till = 13, -- until that time
  set = REST, -- the nodes
}

-- The terms of a vote, beside its record.
TERMS = {
  keptUntil = 13, -- when the ballot expires
  waiter = 8, -- the waiter to enter if the node refuses; spaces if none waits
  longest = 13, -- the longest lease in daily use, or this one if it is longer
  state = 1, -- as the marker has to have it
  id = 16, -- as the marker has to have it; for a lone server, its delay after a start
  ttl = REST,
}

BALLOT = {
  period = 7, -- all ballots of the same 1,000 seconds have these digits
  moment = 9,
}

-- The ballot with the record of its proposer.
RECORD = {
  ballot = BALLOT,
  afterBallot = 1, -- a space
  kind = 1, -- `H`
  afterKind = 1, -- a space
  words = REST, -- owner, token, span, since, channel, meta
}
