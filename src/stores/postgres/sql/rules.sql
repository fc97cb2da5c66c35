-- The rules that several functions follow, each written once. Functions in the language SQL are
-- written into the statements that call them, so a statement about a thousand names and a function
-- about one of them share a rule at no cost.

-- Bounds (rules/bounds.ts, rules/token.ts), in microseconds where they are times.

create or replace function holdfast.max_lease_us_3() returns bigint language sql immutable as $$
  select 3153600000000000
$$;
create or replace function holdfast.min_heartbeat_us_3() returns bigint language sql immutable as $$
  select 1000::bigint
$$;
create or replace function holdfast.max_heartbeat_us_3() returns bigint language sql immutable as $$
  select 788400000000000
$$;
create or replace function holdfast.max_weight_3() returns bigint language sql immutable as $$
  select 9007199254740991
$$;
create or replace function holdfast.max_span_3() returns integer language sql immutable as $$
  select 1024
$$;
create or replace function holdfast.max_token_3() returns bigint language sql immutable as $$
  select 9007199254739967
$$;
-- A token that a client has seen may be this far ahead of the clock: a year.
create or replace function holdfast.max_token_lead_us_3() returns bigint language sql immutable
as $$
  select 31536000000000
$$;
-- How many steps of upkeep a batch does beyond the first of each command (rules/upkeep.ts).
create or replace function holdfast.slice_3() returns integer language sql immutable as $$
  select 64
$$;
-- How many silent clients a command drops, and how many tombstones.
create or replace function holdfast.max_dropped_3() returns integer language sql immutable as $$
  select 64
$$;
create or replace function holdfast.max_tombstones_3() returns integer language sql immutable as $$
  select 16
$$;
-- A client that is silent for this many heartbeat periods loses its places in the queue.
create or replace function holdfast.silent_periods_3() returns integer language sql immutable as $$
  select 3
$$;
-- A crash or a promotion delays free names by at least a minute and at most a day (run.sql).
create or replace function holdfast.min_noted_ttl_us_3() returns bigint language sql immutable as $$
  select 60000000::bigint
$$;
create or replace function holdfast.max_noted_ttl_us_3() returns bigint language sql immutable as $$
  select 86400000000
$$;
create or replace function holdfast.week_us_3() returns bigint language sql immutable as $$
  select 604800000000
$$;

-- The clock and the run of the server.

create or replace function holdfast.clock_3() returns bigint language sql volatile as $$
  select (date_part('epoch', clock_timestamp()) * 1000000)::bigint
$$;

-- The end of the first line of an answer: a space and the run of the server.
create or replace function holdfast.run_3() returns text language sql stable as $$
  select ' ' || (date_part('epoch', pg_postmaster_start_time()) * 1000000)::bigint || chr(10)
$$;

create or replace function holdfast.week_3(now_us bigint) returns integer
language sql immutable as $$
  select (now_us / holdfast.week_us_3())::integer
$$;

-- Whether this commit may be lost in a crash although it was acknowledged.
create or replace function holdfast.is_relaxed_3() returns boolean language sql stable as $$
  select current_setting('synchronous_commit') = 'off' or current_setting('fsync') = 'off'
$$;

-- Whether this session knows that names are granted in this run of the server, and that a ttl and
-- the durability of this commit are noted for this week (run.sql).
create or replace function holdfast.is_noted_3(ttl bigint, now_us bigint) returns boolean
language sql stable as $$
  select current_setting('holdfast.week', true) = holdfast.week_3(now_us)::text
    and least(ttl, holdfast.max_noted_ttl_us_3())
      <= coalesce(nullif(current_setting('holdfast.longest', true), ''), '-1')::bigint
    and (current_setting('holdfast.relaxed', true) = 'true' or not holdfast.is_relaxed_3())
$$;

-- Tokens.

-- Whether a token that a client has seen is within reason.
create or replace function holdfast.is_credible_3(seen bigint, last bigint, now_us bigint)
returns boolean language sql immutable as $$
  select seen <= greatest(last,
    least(now_us + holdfast.max_token_lead_us_3(), holdfast.max_token_3()))
$$;

-- The last token, counted on from one that a client has seen unless that is beyond reason.
create or replace function holdfast.learned_3(last bigint, seen bigint, now_us bigint)
returns bigint language sql immutable as $$
  select case when holdfast.is_credible_3(seen, last, now_us) then greatest(last, seen)
    else last end
$$;

create or replace function holdfast.next_token_3(last bigint, now_us bigint) returns bigint
language sql immutable as $$
  select greatest(now_us, last + 1)
$$;

-- Damage. No command writes the values that these functions refuse: somebody else changed the row,
-- or it was damaged on its way to the disk and back. Nobody is granted such a name (apply.sql), and
-- the sweeper keeps its row. Without arithmetic, which fails for extreme numbers.

create or replace function holdfast.is_lease_sound_3(l holdfast.lease) returns boolean
language sql immutable as $$
  select l is not null and l.expiry >= l.granted and l.token > 0 and l.weight > 0
    and l.weight <= l.weight_limit and l.span between 1 and holdfast.max_span_3()
$$;

create or replace function holdfast.is_row_sound_3(r holdfast.name) returns boolean
language sql immutable as $$
  select r.last >= 0 and r.shared >= 0 and r.shared_weight >= r.shared and r.waiting >= 0
    and (r.lease is null or r.shared = 0 and holdfast.is_lease_sound_3(r.lease)
      and (r.lease).token <= r.last)
    and (r.mark_until is null or r.mark_token is not null and r.mark_meta is not null)
$$;

-- Fails the command, and with it only the commands on the same name (execute.sql).
create or replace function holdfast.refuse_damage_3(is_sound boolean) returns void
language plpgsql as $$
begin
  if is_sound then return; end if;
  raise 'the row has values that no command writes' using errcode = 'data_exception';
end $$;

-- A name and its exclusive holder.

-- Whether a name has nothing but, perhaps, an exclusive holder.
create or replace function holdfast.has_single_holder_3(r holdfast.name) returns boolean
language sql immutable as $$
  select r.shared = 0 and r.waiting = 0 and r.last_tombstone = 0 and r.mark_until is null
$$;

-- Whether a name has nothing to expire while its exclusive holder lives, and nobody to serve.
create or replace function holdfast.needs_no_upkeep_3(r holdfast.name, now_us bigint)
returns boolean language sql immutable as $$
  select r.shared = 0 and r.last_tombstone = 0 and r.mark_until is null
    and (r.waiting = 0 or r.silent > now_us)
$$;

-- Whether a name has no holder. The upkeep removes a holder that has expired (queue.sql).
create or replace function holdfast.is_free_3(r holdfast.name) returns boolean
language sql immutable as $$
  select r.shared = 0 and r.lease is null
$$;

create or replace function holdfast.is_held_by_3(r holdfast.name, asker text, now_us bigint)
returns boolean language sql immutable as $$
  select (r.lease).owner = asker and (r.lease).expiry > now_us
$$;

create or replace function holdfast.are_terms_valid_3(c holdfast.command_3) returns boolean
language sql immutable as $$
  select c.ttl <= holdfast.max_lease_us_3() and c.weight between 1 and c.weight_limit
    and c.weight_limit <= holdfast.max_weight_3() and c.span between 1 and holdfast.max_span_3()
$$;

-- Grant if free: the decision about a name that has nothing but an exclusive holder.
create or replace function holdfast.may_grant_3(
  r holdfast.name, c holdfast.command_3, now_us bigint
) returns boolean language sql immutable as $$
  select holdfast.has_single_holder_3(r) and holdfast.is_free_3(r)
    and holdfast.are_terms_valid_3(c) and holdfast.is_credible_3(c.seen, r.last, now_us)
    and greatest(r.last, c.seen) < holdfast.max_token_3() and c.not_after >= now_us
$$;

-- The lease of an acquire that is granted.
create or replace function holdfast.lease_of_3(
  c holdfast.command_3, asker text, token bigint, now_us bigint
) returns holdfast.lease language sql immutable as $$
  select row(token, now_us, now_us + c.ttl, c.ttl, c.weight, c.weight_limit, c.span, true, asker,
    c.client, c.meta)::holdfast.lease
$$;

-- The lease of a waiter that is served: it lasts for the offer window until it is confirmed.
create or replace function holdfast.offer_to_3(w holdfast.waiter, token bigint, now_us bigint)
returns holdfast.lease language sql immutable as $$
  select row(token, now_us, now_us + w.offer, w.ttl, w.weight, w.weight_limit, w.span, false,
    w.owner, w.client, w.meta)::holdfast.lease
$$;

-- A lease after a renewal or, where the new ttl is null, after a confirm: the first word of a
-- waiter about its grant turns the offer window into the full lease, once. Neither shortens it.
create or replace function holdfast.extended_3(
  l holdfast.lease, new_ttl bigint, resumed_by text, now_us bigint
) returns holdfast.lease language sql immutable as $$
  select row(l.token, l.granted,
    case when new_ttl is null and l.confirmed then l.expiry
      else greatest(l.expiry, now_us + coalesce(new_ttl, l.ttl)) end,
    coalesce(new_ttl, l.ttl), l.weight, l.weight_limit, l.span, true, l.owner,
    coalesce(resumed_by, l.client), l.meta)::holdfast.lease
$$;

-- Whether a renewal or a confirm may act, but for its holder.
create or replace function holdfast.may_extend_3(
  r holdfast.name, c holdfast.command_3, now_us bigint
) returns boolean language sql immutable as $$
  select holdfast.needs_no_upkeep_3(r, now_us) and holdfast.is_row_sound_3(r)
    and (c.verb = 'confirm' or c.ttl <= holdfast.max_lease_us_3() and c.not_after >= now_us)
$$;
