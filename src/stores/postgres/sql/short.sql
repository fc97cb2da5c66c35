-- The rules of the short paths, which change names that have nothing but an exclusive holder. The
-- functions in the language SQL are written into the statements that call them.

create or replace function holdfast.clock_1() returns bigint language sql volatile as $$
  select (date_part('epoch', clock_timestamp()) * 1000000)::bigint
$$;

-- The end of the first line of an answer: a space and the run of the server.
create or replace function holdfast.run_1() returns text language sql stable as $$
  select ' ' || (date_part('epoch', pg_postmaster_start_time()) * 1000000)::bigint || chr(10)
$$;

create or replace function holdfast.is_lone_1(r holdfast.name) returns boolean
language sql immutable as $$
  select r.shared = 0 and r.waiting = 0 and r.buried = 0 and r.mark_until is null
$$;

-- Whether there is nothing to do at a name while its exclusive holder lives, but for waiting.
create or replace function holdfast.is_quiet_1(r holdfast.name, now_us bigint) returns boolean
language sql immutable as $$
  select r.shared = 0 and r.buried = 0 and r.mark_until is null
    and (r.waiting = 0 or r.silent > now_us)
$$;

-- The last token, counted on from one that a client has seen unless that is beyond reason.
create or replace function holdfast.learned_1(last bigint, seen bigint, now_us bigint)
returns bigint language sql immutable as $$
  select case when seen <= least(now_us + 31536000000000, 9007199254739967)
    then greatest(last, seen) else last end
$$;

create or replace function holdfast.token_1(last bigint, seen bigint, now_us bigint)
returns bigint language sql immutable as $$
  select greatest(now_us, holdfast.learned_1(last, seen, now_us) + 1)
$$;

-- Whether a token that a client has seen is within reason, and the next one not too high.
create or replace function holdfast.may_count_on_1(last bigint, seen bigint, now_us bigint)
returns boolean language sql immutable as $$
  select seen <= greatest(last, least(now_us + 31536000000000, 9007199254739967))
    and greatest(last, seen) < 9007199254739967
$$;

-- Whether the terms of an acquire are within bounds (rules/bounds.ts).
create or replace function holdfast.is_fair_1(ttl bigint, weight bigint, most bigint, span bigint)
returns boolean language sql immutable as $$
  select ttl <= 3153600000000000 and weight between 1 and most and span between 1 and 1024
$$;

-- Whether this session knows that names are granted in this run of the server, and that a ttl and
-- the durability of this commit are noted for this week (run.sql). A ttl of more than a day counts
-- as a day.
create or replace function holdfast.is_noted_1(ttl bigint, now_us bigint) returns boolean
language sql stable as $$
  select current_setting('holdfast.week', true) = holdfast.week_1(now_us)::text
    and least(ttl, 86400000000)
      <= coalesce(nullif(current_setting('holdfast.longest', true), ''), '-1')::bigint
    and (current_setting('holdfast.relaxed', true) = 'true' or not holdfast.is_relaxed_1())
$$;
