// Written by `npm run sql` from sql/*.sql: change those, and run it.
export const SCHEMA: string = `-- From tables.sql
-- The tables of the ledger. A name has one row, which stays and keeps the last token of the name.
-- The common case needs nothing else: the one exclusive holder is in that row. The counts in the
-- row say whether the other tables have rows of the name; otherwise they are not read.
--
-- Times are microseconds of the server's clock. There are no checks: each costs as much as half an
-- UPDATE. A row with numbers that no client wrote fails the commands on its own name only
-- (batch.sql), and the client refuses to read what is no whole number below 2^53.
create schema if not exists holdfast;

-- The functions run with the rights of the role that makes them. A role that owns the schema, may
-- create in it or has a trigger on a table could have its own code run with these rights. So the
-- schema and all that is in it must belong to this role, and no other role may create in it.
-- The transaction is read committed: an older snapshot would not show what was made meanwhile.
do $$
declare
  this_role constant oid := (select r.oid from pg_roles r where r.rolname = current_user);
  this_schema constant oid := 'holdfast'::regnamespace;
  advice constant text := 'Migrate as the owner, or drop what nobody needs.';
  other record;
begin
  select pg_get_userbyid(n.nspowner) as role into other from pg_namespace n
    where n.oid = this_schema and n.nspowner <> this_role;
  if found then
    raise 'The schema holdfast belongs to the role "%", not to "%"', other.role, current_user
      using errcode = 'LF004', hint = advice;
  end if;
  select pg_get_userbyid(o.owner) as role, o.name into other from (
      select p.proowner as owner, p.oid::regprocedure::text as name, p.pronamespace as schema
        from pg_proc p
      union all select c.relowner, c.oid::regclass::text, c.relnamespace from pg_class c
      union all select t.typowner, t.oid::regtype::text, t.typnamespace from pg_type t
      union all select p.oprowner, p.oid::regoperator::text, p.oprnamespace from pg_operator p
      union all select p.proowner, format('the trigger %I on %s', t.tgname, c.oid::regclass),
        c.relnamespace from pg_trigger t join pg_class c on c.oid = t.tgrelid
        join pg_proc p on p.oid = t.tgfoid where not t.tgisinternal
    ) o where o.schema = this_schema and o.owner <> this_role limit 1;
  if found then
    raise 'The role "%" owns % in the schema holdfast', other.role, other.name
      using errcode = 'LF004', hint = advice;
  end if;
  revoke all on schema holdfast from public;
  select pg_get_userbyid(a.grantee) as role into other
    from pg_namespace n, aclexplode(n.nspacl) a
    where n.oid = this_schema and a.privilege_type = 'CREATE' and a.grantee <> this_role limit 1;
  if found then
    raise 'The role "%" may create in the schema holdfast', other.role
      using errcode = 'LF004', hint = 'Revoke that, in the default privileges as well.';
  end if;
end $$;

-- The layout of version 1, which was never released, kept the exclusive holder in columns.
do $$
begin
  if exists (select from pg_attribute a where a.attrelid = to_regclass('holdfast.name')
      and a.attname = 'owner' and not a.attisdropped) then
    raise 'The tables of the schema holdfast have the layout of an unreleased version'
      using errcode = 'LF005', hint = 'drop schema holdfast cascade, while no program uses locks.';
  end if;
end $$;

-- The types. Two migrations wait for each other, so what is missing here stays missing.
do $$
begin
  -- The terms of a command; those that its verb does not need are null. Times are microseconds.
  if to_regtype('holdfast.command_2') is null then
    create type holdfast.command_2 as (
      -- acquire, confirm, renew, release, touch, inspect or revoke
      verb text,
      -- How many names the command is for: one after the other in the names of the batch.
      names integer,
      -- acquire and renew; a release that leaves a mark has the length of the mark
      ttl bigint,
      -- acquire and renew: not after this time; and the highest token that the client has seen
      not_after bigint, seen bigint,
      -- acquire; a release that leaves a mark has its meta
      client text, is_exclusive boolean, weight bigint, weight_limit bigint, span bigint,
      offer bigint, touch bigint, may_wait boolean, meta text,
      -- renew: the client that the lease belongs to from now on, or null
      heir text,
      -- release: the end of the tombstone
      tombstone bigint,
      -- revoke
      reason text
    );
  end if;
  if to_regtype('holdfast.lease') is null then
    create type holdfast.lease as (
      token bigint, granted bigint, expiry bigint, ttl bigint, weight bigint, weight_limit bigint,
      span integer, confirmed boolean, owner text, client text, meta text
    );
  end if;
end $$;

create table if not exists holdfast.name (
  namespace text collate "C" not null,
  key text collate "C" not null,
  -- The last token of this name.
  last bigint not null default 0,
  -- How many rows the name has in holdfast.holder, and the sum of their weights.
  shared integer not null default 0,
  shared_weight bigint not null default 0,
  -- How many rows it has in holdfast.waiter, and the last place in the queue.
  waiting integer not null default 0,
  place bigint not null default 0,
  -- No waiting client is silent for too long before this time.
  silent bigint not null default 0,
  -- The end of the last tombstone; 0: there is none in holdfast.tombstone.
  last_tombstone bigint not null default 0,
  -- The exclusive holder; null where there is none.
  lease holdfast.lease,
  -- The mark of a finished once; the time is null where there is none.
  mark_until bigint,
  mark_token bigint,
  mark_meta text,
  primary key (namespace, key)
) with (
  -- Room for new versions of a row on its own page: no index changes, so updates are HOT.
  fillfactor = 30,
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_cost_delay = 0
);

-- The shared holders of a name.
create table if not exists holdfast.holder (
  namespace text collate "C" not null,
  key text collate "C" not null,
  token bigint not null,
  granted bigint not null,
  expiry bigint not null,
  ttl bigint not null,
  weight bigint not null,
  weight_limit bigint not null,
  span integer not null,
  confirmed boolean not null,
  owner text collate "C" not null,
  client text collate "C" not null,
  meta text not null,
  primary key (namespace, key, token)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_cost_delay = 0);

-- The queue of a name.
create table if not exists holdfast.waiter (
  namespace text collate "C" not null,
  key text collate "C" not null,
  place bigint not null,
  since bigint not null,
  ttl bigint not null,
  offer bigint not null,
  weight bigint not null,
  weight_limit bigint not null,
  span integer not null,
  exclusive boolean not null,
  owner text collate "C" not null,
  client text collate "C" not null,
  meta text not null,
  primary key (namespace, key, place)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_cost_delay = 0);

-- The clients that have waiters at a name. Each row knows the place of the client's first waiter,
-- so a suspect client is passed over in one step, however many of its waiters come first.
create table if not exists holdfast.client (
  namespace text collate "C" not null,
  key text collate "C" not null,
  id text collate "C" not null,
  place bigint not null,
  touch bigint not null,
  gone bigint not null,
  waiting integer not null,
  suspect boolean not null,
  -- The advisory lock of the connection by which the client spoke last (queue.sql); null where the
  -- client has no connection of its own.
  connection bigint,
  primary key (namespace, key, id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_cost_delay = 0);

-- Owners that have ended: their late requests are refused until then.
create table if not exists holdfast.tombstone (
  namespace text collate "C" not null,
  key text collate "C" not null,
  owner text collate "C" not null,
  until bigint not null,
  -- Null where the owner was released, and not revoked.
  reason text,
  primary key (namespace, key, owner)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_cost_delay = 0);

-- The indexes. "create index if not exists" locks its table although the index exists, and batches
-- lock the tables in another order. So it runs only where an index is missing, and then after the
-- lock that every batch takes first: no batch waits for this transaction while this one waits for
-- it.
do $$
begin
  if (select count(*) from pg_class c where c.relnamespace = 'holdfast'::regnamespace and c.relname
      in ('holder_owner', 'holder_expiry', 'holder_limit', 'holder_offer',
      'waiter_owner', 'waiter_client', 'client_place', 'client_gone', 'tombstone_end')) = 9 then
    return;
  end if;
  lock table holdfast.name in exclusive mode;
  create unique index if not exists holder_owner on holdfast.holder (namespace, key, owner);
  create index if not exists holder_expiry on holdfast.holder (namespace, key, expiry, token);
  create index if not exists holder_limit on holdfast.holder (namespace, key, weight_limit);
  create index if not exists holder_offer on holdfast.holder (namespace, key, client, token)
    where not confirmed;
  create unique index if not exists waiter_owner on holdfast.waiter (namespace, key, owner);
  create index if not exists waiter_client on holdfast.waiter (namespace, key, client, place);
  create index if not exists client_place on holdfast.client (namespace, key, place)
    where not suspect;
  create index if not exists client_gone on holdfast.client (namespace, key, gone);
  create index if not exists tombstone_end on holdfast.tombstone (namespace, key, until);
end $$;

-- The last token of all rows of holdfast.name that were removed: new rows start from it.
create table if not exists holdfast.namespace (
  name text collate "C" primary key,
  floor bigint not null check (floor between 0 and 9007199254740991)
);

-- One row: the version of these tables, and all that decides after a crash whether commits may have
-- been lost (run.sql).
create table if not exists holdfast.server (
  single boolean primary key default true check (single),
  version integer not null,
  system text not null,
  timeline text not null,
  -- No free name is granted before this time; 0: names are granted.
  grants_from bigint not null default 0,
  -- The week, counted from 1970, that these are noted for: the longest ttl, and whether
  -- durability was relaxed; then the same for the week before.
  week integer not null default 0,
  longest bigint not null default 60000000 check (longest between 0 and 86400000000),
  relaxed boolean not null default false,
  last_longest bigint not null default 60000000 check (last_longest between 0 and 86400000000),
  last_relaxed boolean not null default false
);

-- One row, lost with a crash or a promotion and kept by an orderly restart (run.sql).
create unlogged table if not exists holdfast.marker (
  single boolean primary key default true check (single),
  system text not null,
  timeline text not null,
  grants_from bigint not null,
  week integer not null,
  longest bigint not null,
  relaxed boolean not null
);

-- From rules.sql
-- The rules that several functions follow, each written once. Functions in the language SQL are
-- written into the statements that call them, so a statement about a thousand names and a function
-- about one of them share a rule at no cost.

-- Bounds (rules/bounds.ts, rules/token.ts), in microseconds where they are times.

create or replace function holdfast.max_lease_us_2() returns bigint language sql immutable as $$
  select 3153600000000000
$$;
create or replace function holdfast.min_touch_us_2() returns bigint language sql immutable as $$
  select 1000::bigint
$$;
create or replace function holdfast.max_touch_us_2() returns bigint language sql immutable as $$
  select 788400000000000
$$;
create or replace function holdfast.max_weight_2() returns bigint language sql immutable as $$
  select 9007199254740991
$$;
create or replace function holdfast.max_span_2() returns integer language sql immutable as $$
  select 1024
$$;
create or replace function holdfast.max_token_2() returns bigint language sql immutable as $$
  select 9007199254739967
$$;
-- A token that a client has seen may be this far ahead of the clock: a year.
create or replace function holdfast.max_token_lead_us_2() returns bigint language sql immutable
as $$
  select 31536000000000
$$;
-- How many steps of upkeep a batch does beyond the first of each command (rules/upkeep.ts).
create or replace function holdfast.slice_2() returns integer language sql immutable as $$
  select 64
$$;
-- How many silent clients a command drops, and how many tombstones.
create or replace function holdfast.max_dropped_2() returns integer language sql immutable as $$
  select 64
$$;
create or replace function holdfast.max_tombstones_2() returns integer language sql immutable as $$
  select 16
$$;
-- A client that is silent for this many of its touch periods loses its places in the queue.
create or replace function holdfast.silent_periods_2() returns integer language sql immutable as $$
  select 3
$$;
-- A crash or a promotion delays free names by at least a minute and at most a day (run.sql).
create or replace function holdfast.min_noted_ttl_us_2() returns bigint language sql immutable as $$
  select 60000000::bigint
$$;
create or replace function holdfast.max_noted_ttl_us_2() returns bigint language sql immutable as $$
  select 86400000000
$$;
create or replace function holdfast.week_us_2() returns bigint language sql immutable as $$
  select 604800000000
$$;

-- The clock and the run of the server.

create or replace function holdfast.clock_2() returns bigint language sql volatile as $$
  select (date_part('epoch', clock_timestamp()) * 1000000)::bigint
$$;

-- The end of the first line of an answer: a space and the run of the server.
create or replace function holdfast.run_2() returns text language sql stable as $$
  select ' ' || (date_part('epoch', pg_postmaster_start_time()) * 1000000)::bigint || chr(10)
$$;

create or replace function holdfast.week_2(now_us bigint) returns integer
language sql immutable as $$
  select (now_us / holdfast.week_us_2())::integer
$$;

-- Whether this commit may be lost in a crash although it was acknowledged.
create or replace function holdfast.is_relaxed_2() returns boolean language sql stable as $$
  select current_setting('synchronous_commit') = 'off' or current_setting('fsync') = 'off'
$$;

-- Whether this session knows that names are granted in this run of the server, and that a ttl and
-- the durability of this commit are noted for this week (run.sql).
create or replace function holdfast.is_noted_2(ttl bigint, now_us bigint) returns boolean
language sql stable as $$
  select current_setting('holdfast.week', true) = holdfast.week_2(now_us)::text
    and least(ttl, holdfast.max_noted_ttl_us_2())
      <= coalesce(nullif(current_setting('holdfast.longest', true), ''), '-1')::bigint
    and (current_setting('holdfast.relaxed', true) = 'true' or not holdfast.is_relaxed_2())
$$;

-- Tokens.

-- Whether a token that a client has seen is within reason.
create or replace function holdfast.is_credible_2(seen bigint, last bigint, now_us bigint)
returns boolean language sql immutable as $$
  select seen <= greatest(last,
    least(now_us + holdfast.max_token_lead_us_2(), holdfast.max_token_2()))
$$;

-- The last token, counted on from one that a client has seen unless that is beyond reason.
create or replace function holdfast.learned_2(last bigint, seen bigint, now_us bigint)
returns bigint language sql immutable as $$
  select case when holdfast.is_credible_2(seen, last, now_us) then greatest(last, seen)
    else last end
$$;

create or replace function holdfast.next_token_2(last bigint, now_us bigint) returns bigint
language sql immutable as $$
  select greatest(now_us, last + 1)
$$;

-- A name and its exclusive holder.

-- Whether a name has nothing but, perhaps, an exclusive holder.
create or replace function holdfast.has_single_holder_2(r holdfast.name) returns boolean
language sql immutable as $$
  select r.shared = 0 and r.waiting = 0 and r.last_tombstone = 0 and r.mark_until is null
$$;

-- Whether a name has nothing to expire while its exclusive holder lives, and nobody to serve.
create or replace function holdfast.needs_no_upkeep_2(r holdfast.name, now_us bigint)
returns boolean language sql immutable as $$
  select r.shared = 0 and r.last_tombstone = 0 and r.mark_until is null
    and (r.waiting = 0 or r.silent > now_us)
$$;

-- Whether nobody holds a name.
create or replace function holdfast.is_free_2(r holdfast.name, now_us bigint) returns boolean
language sql immutable as $$
  select r.shared = 0 and ((r.lease).owner is null or (r.lease).expiry <= now_us)
$$;

create or replace function holdfast.is_held_by_2(r holdfast.name, asker text, now_us bigint)
returns boolean language sql immutable as $$
  select (r.lease).owner = asker and (r.lease).expiry > now_us
$$;

create or replace function holdfast.are_terms_valid_2(c holdfast.command_2) returns boolean
language sql immutable as $$
  select c.ttl <= holdfast.max_lease_us_2() and c.weight between 1 and c.weight_limit
    and c.weight_limit <= holdfast.max_weight_2() and c.span between 1 and holdfast.max_span_2()
$$;

-- Grant if free: the decision about a name that has nothing but an exclusive holder.
create or replace function holdfast.may_grant_2(
  r holdfast.name, c holdfast.command_2, now_us bigint
) returns boolean language sql immutable as $$
  select holdfast.has_single_holder_2(r) and holdfast.is_free_2(r, now_us)
    and holdfast.are_terms_valid_2(c) and holdfast.is_credible_2(c.seen, r.last, now_us)
    and greatest(r.last, c.seen) < holdfast.max_token_2() and c.not_after >= now_us
$$;

-- The lease of an acquire that is granted.
create or replace function holdfast.lease_of_2(
  c holdfast.command_2, asker text, token bigint, now_us bigint
) returns holdfast.lease language sql immutable as $$
  select row(token, now_us, now_us + c.ttl, c.ttl, c.weight, c.weight_limit, c.span, true, asker,
    c.client, c.meta)::holdfast.lease
$$;

-- The lease of a waiter that is served: it lasts for the offer window until it is confirmed.
create or replace function holdfast.offer_to_2(w holdfast.waiter, token bigint, now_us bigint)
returns holdfast.lease language sql immutable as $$
  select row(token, now_us, now_us + w.offer, w.ttl, w.weight, w.weight_limit, w.span, false,
    w.owner, w.client, w.meta)::holdfast.lease
$$;

-- A lease after a renewal or, where the new ttl is null, after a confirm: the first word of a
-- waiter about its grant turns the offer window into the full lease, once. Neither shortens it.
create or replace function holdfast.extended_2(
  l holdfast.lease, new_ttl bigint, heir text, now_us bigint
) returns holdfast.lease language sql immutable as $$
  select row(l.token, l.granted,
    case when new_ttl is null and l.confirmed then l.expiry
      else greatest(l.expiry, now_us + coalesce(new_ttl, l.ttl)) end,
    coalesce(new_ttl, l.ttl), l.weight, l.weight_limit, l.span, true, l.owner,
    coalesce(heir, l.client), l.meta)::holdfast.lease
$$;

-- Whether a renewal or a confirm may act, but for its holder.
create or replace function holdfast.may_extend_2(
  r holdfast.name, c holdfast.command_2, now_us bigint
) returns boolean language sql immutable as $$
  select holdfast.needs_no_upkeep_2(r, now_us) and (c.verb = 'confirm'
    or c.ttl <= holdfast.max_lease_us_2() and c.not_after >= now_us)
$$;

-- From run.sql
-- The run of the server. Commits may be lost by a crash with relaxed durability
-- (synchronous_commit or fsync off), and by the promotion of a standby. A lost commit may be a
-- grant or a renewal: the row shows the name as free, and its holder believes in its lease for up
-- to its ttl after that commit, which came before the new run began. So no free name is granted
-- until the longest ttl has passed since the new run began. Holders that the rows show go on: a
-- renewal gives nothing that another client was not refused.
--
-- How it is noticed: holdfast.marker is unlogged, so a crash and a promotion empty it. A crash ends
-- all sessions, and no session of a standby has run a batch. So each session reads the marker
-- until it has seen one with which names are granted, and keeps that in settings of its own.
-- The batch that finds the marker empty makes it again before any grant.
--
-- Which ttl is the longest: holdfast.server has the longest ttl of a week and of the noted week
-- before it. Whatever makes or extends a lease (a grant, a renewal, a handoff, a confirm) and finds
-- its ttl not noted for the present week notes it in its own transaction. A ttl that was in use in
-- neither week is forgotten. A crash loses no note, because the commit of a note waits for the
-- disk.
--
-- Suppose that a promotion loses a commit with a ttl that is in use in every week. The standby has
-- the row of an earlier moment. Whichever week that row is of, the ttl was noted in it or in the
-- week before, so the row covers it. A waiter uses no lease while it waits, maybe for weeks, and a
-- promotion may lose its handoff together with its confirm. So each week starts with the longest
-- ttl of all waiters: the row covers every waiter that the standby knows. If the standby knows the
-- handoff and not the confirm, it knows the note of the handoff. A ttl that no lease and no waiter
-- had for a week is covered from the moment at which its new note is replicated.
--
-- Lock order: the rows of holdfast.name first, then holdfast.server, then holdfast.marker. A batch
-- that waits for one of the last two holds all the names it needs, so it is in no cycle.

-- The timeline of the write-ahead log: a promotion starts a new one.
create or replace function holdfast.timeline_2() returns text
language sql volatile set search_path = pg_catalog, pg_temp as $$
  select left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)
$$;

create or replace function holdfast.system_2() returns text
language sql volatile set search_path = pg_catalog, pg_temp as $$
  select system_identifier::text from pg_control_system()
$$;

-- Makes the marker of a new run. Commits were possibly lost if this is another server or timeline,
-- or if durability was relaxed. Otherwise a crash has lost nothing by itself, but it may have come
-- while names were not granted yet: the logged row keeps until when.
create or replace function holdfast.start_run_2(now_us bigint) returns void
language plpgsql as $$
declare
  s holdfast.server;
  this_system constant text := holdfast.system_2();
  this_timeline constant text := holdfast.timeline_2();
  is_same boolean;
begin
  select * into s from holdfast.server for update;
  if not found then
    raise 'holdfast.server has no row: run "holdfast migrate"' using errcode = 'LF003';
  end if;
  is_same := s.system = this_system and s.timeline = this_timeline;
  if not is_same or s.relaxed or s.last_relaxed then
    s.grants_from := now_us + greatest(s.longest, s.last_longest);
  end if;
  -- A restored dump has the marker of another server.
  delete from holdfast.marker m
    where m.system <> this_system or m.timeline <> this_timeline;
  insert into holdfast.marker values (
    true, this_system, this_timeline, s.grants_from, s.week, s.longest, s.relaxed
  ) on conflict do nothing;
  if not found then return; end if;
  update holdfast.server o
    set system = this_system, timeline = this_timeline, grants_from = s.grants_from
    where not is_same or o.grants_from <> s.grants_from;
end $$;

-- Reads the marker. Notes a ttl and relaxed durability for this week, before a grant that needs
-- it; that commit waits for the disk even where synchronous_commit is off, so no such grant
-- outlives the change in a crash. Returns the time from which names are granted.
create or replace function holdfast.note_2(ttl bigint, now_us bigint) returns bigint
language plpgsql as $$
declare
  m holdfast.marker;
  counted constant bigint := case when ttl <= holdfast.max_lease_us_2()
    then least(ttl, holdfast.max_noted_ttl_us_2()) else 0 end;
  is_relaxed constant boolean := holdfast.is_relaxed_2();
  this_week constant integer := holdfast.week_2(now_us);
begin
  select * into m from holdfast.marker o
    where o.system = holdfast.system_2() and o.timeline = holdfast.timeline_2();
  if not found then
    perform holdfast.start_run_2(now_us);
    select * into m from holdfast.marker;
  end if;
  if m.grants_from > 0 then m.grants_from := holdfast.grants_from_2(m.grants_from, now_us); end if;
  if m.week <> this_week or m.longest < counted or m.relaxed < is_relaxed then
    update holdfast.server s set
      week = this_week,
      -- A clock that was set back forgets nothing.
      longest = greatest(holdfast.min_noted_ttl_us_2(), counted, case
        when s.week >= this_week then s.longest
        else (select max(least(w.ttl, holdfast.max_noted_ttl_us_2())) from holdfast.waiter w) end),
      relaxed = is_relaxed or s.week >= this_week and s.relaxed,
      -- However many weeks have passed: the clock may have jumped ahead, and sessions that noted
      -- their ttl before that go on when it is set back.
      last_longest = case when s.week >= this_week then s.last_longest else s.longest end,
      last_relaxed = case when s.week >= this_week then s.last_relaxed else s.relaxed end
      returning s.week, s.longest, s.relaxed into m.week, m.longest, m.relaxed;
    update holdfast.marker o set week = m.week, longest = m.longest, relaxed = m.relaxed;
    perform set_config('synchronous_commit', 'on', true)
      where current_setting('synchronous_commit') = 'off';
  end if;
  if m.grants_from = 0 then
    perform set_config('holdfast.week', m.week::text, false),
      set_config('holdfast.longest', m.longest::text, false),
      set_config('holdfast.relaxed', m.relaxed::text, false);
  end if;
  return m.grants_from;
end $$;

-- The time from which names are granted; 0 once it has come. That is kept, because the clock may be
-- set back afterwards. Where the clock was set back before, the longest ttl passes once more: no
-- lease that was lost lives longer, and names do not wait for as long as the clock was ahead.
create or replace function holdfast.grants_from_2(noted bigint, now_us bigint) returns bigint
language plpgsql as $$
declare
  start bigint := 0;
begin
  if noted > now_us then
    select least(noted, now_us + greatest(s.longest, s.last_longest)) into start
      from holdfast.server s;
  end if;
  if start <> noted then
    update holdfast.server s set grants_from = start;
    update holdfast.marker o set grants_from = start;
  end if;
  return start;
end $$;

-- Lets this transaction commit without waiting for the disk, for releases that hand nothing off. A
-- crash loses only the end of the log. Every grant waits for the disk, and with it for all commits
-- before it. So a release that is lost had no grant of its name after it: the row shows a holder
-- that has left, until its lease ends, and no other client believes that it holds the name.
create or replace function holdfast.forgo_disk_2() returns text language sql volatile as $$
  select set_config('synchronous_commit', 'off', true)
$$;

-- From replies.sql
-- Replies as texts. The first letter says which, a JSON array has the rest (codec.ts). No reply has
-- a line break: they are told apart by it.

create or replace function holdfast.holder_json_2(h holdfast.lease, is_exclusive boolean,
  now_us bigint) returns jsonb language sql stable as $$
  select jsonb_build_array(h.expiry - now_us, h.token, h.span,
    case when is_exclusive then 'x' else 's' end, h.weight, h.weight_limit, now_us - h.granted,
    h.meta)
$$;

-- The blockage of the request \`w\`: the holder that expires first, and the time until then. If no
-- holder is in its way, the time until names are granted again.
create or replace function holdfast.blockage_2(
  r holdfast.name, w holdfast.waiter, now_us bigint, grants_from bigint
) returns jsonb language plpgsql as $$
declare
  l holdfast.lease := holdfast.next_to_expire_2(r);
begin
  if l.owner is null or now_us < grants_from
    and holdfast.may_join_2(r, w.exclusive, w.weight, w.weight_limit) then
    return jsonb_build_array(greatest(0, grants_from - now_us));
  end if;
  return holdfast.holder_json_2(l, r.shared = 0, now_us);
end $$;

create or replace function holdfast.mark_json_2(r holdfast.name, now_us bigint) returns jsonb
language sql stable as $$
  select case when r.mark_until > now_us then
    jsonb_build_array(r.mark_token, r.mark_until - now_us, r.mark_meta) end
$$;

create or replace function holdfast.renewed_2(
  l holdfast.lease, waiting integer, now_us bigint
) returns text language sql stable as $$
  select 'N[' || l.expiry - now_us || case when waiting > 0 then ',true,' else ',false,' end ||
    l.token || ',' || l.span || ']'
$$;

-- \`next\` is the holder that expires first, perhaps one that was just served; \`more\`: there are
-- more waiters to serve.
create or replace function holdfast.released_2(
  was_held boolean, next holdfast.lease, more boolean, now_us bigint
) returns text language sql stable as $$
  select 'R' || json_build_array(was_held, case when next.owner is null or next.confirmed then 0
    else greatest(0, next.expiry - now_us) end, more)
$$;

-- The reply to a renewal or confirm without a holder: whether it was revoked, and why.
create or replace function holdfast.gone_2(r holdfast.name, ended text, now_us bigint)
returns text language plpgsql as $$
declare
  why text;
begin
  if r.last_tombstone > now_us then
    select t.reason into why from holdfast.tombstone t
      where t.namespace = r.namespace and t.key = r.key and t.owner = ended and t.until > now_us;
  end if;
  if why is not null then return 'O' || json_build_array('v', why); end if;
  return case when (r.lease).owner is null then 'O["m",""]' else 'O["r",""]' end;
end $$;

-- The state of a name: [holders, waiters, mark].
create or replace function holdfast.view_2(r holdfast.name, now_us bigint) returns jsonb
language plpgsql as $$
declare
  holders jsonb := '[]';
  waiters jsonb := '[]';
begin
  if (r.lease).expiry > now_us then
    holders := jsonb_build_array(holdfast.holder_json_2(r.lease, true, now_us));
  elsif r.shared > 0 then
    select coalesce(jsonb_agg(holdfast.holder_json_2(holdfast.as_lease_2(h), false, now_us)
        order by h.token), '[]')
      into holders from holdfast.holder h
      where h.namespace = r.namespace and h.key = r.key and h.expiry > now_us;
  end if;
  if r.waiting > 0 then
    select coalesce(jsonb_agg(jsonb_build_array(case when w.exclusive then 'x' else 's' end,
        w.weight, w.weight_limit, now_us - w.since, w.meta) order by w.place), '[]')
      into waiters from holdfast.waiter w
      where w.namespace = r.namespace and w.key = r.key;
  end if;
  return jsonb_build_array(holders, waiters, holdfast.mark_json_2(r, now_us));
end $$;

-- From holders.sql
-- Holders of one name. \`r\` is the row of the name, which the batch has locked; the functions change
-- it, and apply_2 writes it back. An exclusive holder is in that row; shared holders have a table.

create or replace function holdfast.as_lease_2(h holdfast.holder) returns holdfast.lease
language sql immutable as $$
  select row(h.token, h.granted, h.expiry, h.ttl, h.weight, h.weight_limit, h.span, h.confirmed,
    h.owner, h.client, h.meta)::holdfast.lease
$$;

-- Whether a request may join those who hold the name already (rules/fits.ts).
create or replace function holdfast.may_join_2(
  r holdfast.name, is_exclusive boolean, weight bigint, weight_limit bigint
) returns boolean language plpgsql as $$
begin
  if is_exclusive or r.shared = 0 then return false; end if;
  return r.shared_weight + weight <= least(weight_limit, (
    select min(h.weight_limit) from holdfast.holder h
      where h.namespace = r.namespace and h.key = r.key
  ));
end $$;

-- The holder that expires first; of two that expire together, the older grant.
create or replace function holdfast.next_to_expire_2(r holdfast.name) returns holdfast.lease
language plpgsql as $$
declare
  l holdfast.lease := r.lease;
begin
  if r.shared > 0 then
    select (holdfast.as_lease_2(h)).* into l from holdfast.holder h
      where h.namespace = r.namespace and h.key = r.key order by h.expiry, h.token limit 1;
  end if;
  return l;
end $$;

create or replace function holdfast.put_holder_2(
  inout r holdfast.name, is_exclusive boolean, l holdfast.lease
) language plpgsql as $$
begin
  r.last := l.token + l.span - 1;
  if is_exclusive then
    r.lease := l;
  else
    insert into holdfast.holder values (r.namespace, r.key, (l).*);
    r.shared := r.shared + 1;
    r.shared_weight := r.shared_weight + l.weight;
  end if;
end $$;

create or replace function holdfast.drop_holder_2(inout r holdfast.name, l holdfast.lease)
language plpgsql as $$
begin
  if (r.lease).owner = l.owner then
    r.lease := null;
  else
    delete from holdfast.holder h
      where h.namespace = r.namespace and h.key = r.key and h.token = l.token;
    r.shared := greatest(r.shared - 1, 0);
    r.shared_weight := greatest(r.shared_weight - l.weight, 0);
  end if;
end $$;

-- Keeps what a renewal or a confirm has changed.
create or replace function holdfast.update_holder_2(inout r holdfast.name, l holdfast.lease)
language plpgsql as $$
begin
  if (r.lease).owner = l.owner then
    r.lease := l;
  else
    update holdfast.holder h
      set expiry = l.expiry, ttl = l.ttl, confirmed = l.confirmed, client = l.client
      where h.namespace = r.namespace and h.key = r.key and h.token = l.token;
  end if;
end $$;

-- Removes an expired holder. One that never confirmed its grant makes its client a suspect, unless
-- the client has spoken since the grant ended.
create or replace function holdfast.lapse_2(inout r holdfast.name, l holdfast.lease)
language plpgsql as $$
begin
  r := holdfast.drop_holder_2(r, l);
  if l.confirmed or r.waiting = 0 then return; end if;
  update holdfast.client c set suspect = true
    where c.namespace = r.namespace and c.key = r.key and c.id = l.client
      and not c.suspect and c.gone - holdfast.silent_periods_2() * c.touch < l.expiry;
end $$;

-- The holder of an owner. One that has expired goes at once, however many are to be dropped before.
create or replace function holdfast.holder_of_2(
  inout r holdfast.name, asker text, now_us bigint, out l holdfast.lease
) language plpgsql as $$
begin
  if (r.lease).owner = asker then
    l := r.lease;
  elsif r.shared > 0 then
    select (holdfast.as_lease_2(h)).* into l from holdfast.holder h
      where h.namespace = r.namespace and h.key = r.key and h.owner = asker;
  end if;
  if l.owner is null or l.expiry > now_us then return; end if;
  r := holdfast.lapse_2(r, l);
  l := null;
end $$;

-- From queue.sql
-- The queue of one name, and the upkeep that every command does before it acts (rules/upkeep.ts).
--
-- NOTIFY does not say whether anyone listens. So each client takes a session advisory lock with a
-- random key when it connects (session.ts), and its rows in holdfast.client keep that key. The
-- server frees the lock when the connection ends: while nobody has it, no push reaches the client.
-- Only the order of the queue depends on this, never whether a name is free: a client that is taken
-- for dead is passed over until its next word, and one that is taken for alive costs an offer.

-- The key of this connection; null behind a pooler that lends it for one transaction.
create or replace function holdfast.connection_2() returns bigint language sql stable as $$
  select nullif(current_setting('holdfast.connection', true), '')::bigint
$$;

-- Whether a push may reach the client of this connection. Locks of one session never conflict, so
-- the lock of this connection proves nothing here.
create or replace function holdfast.is_reachable_2(connection bigint) returns boolean
language sql volatile as $$
  select case when connection is null or connection = holdfast.connection_2() then true
    else not pg_try_advisory_xact_lock_shared(connection) end
$$;

create or replace function holdfast.enqueue_2(
  inout r holdfast.name, w holdfast.waiter, touch bigint, now_us bigint
) language plpgsql as $$
declare
  gone constant bigint := now_us + holdfast.silent_periods_2() * touch;
begin
  r.place := r.place + 1;
  r.silent := case when r.waiting = 0 then gone else least(r.silent, gone) end;
  r.waiting := r.waiting + 1;
  w.namespace := r.namespace;
  w.key := r.key;
  w.place := r.place;
  w.since := now_us;
  insert into holdfast.waiter values (w.*);
  insert into holdfast.client as c
    values (r.namespace, r.key, w.client, r.place, touch, gone, 1, false, holdfast.connection_2())
    on conflict (namespace, key, id) do update set
      waiting = c.waiting + 1,
      touch = greatest(c.touch, excluded.touch),
      gone = greatest(c.gone, excluded.gone);
end $$;

-- Removes a waiter, and with its last one the client.
create or replace function holdfast.drop_waiter_2(inout r holdfast.name, w holdfast.waiter)
language plpgsql as $$
begin
  delete from holdfast.waiter v
    where v.namespace = r.namespace and v.key = r.key and v.place = w.place;
  r.waiting := greatest(r.waiting - 1, 0);
  delete from holdfast.client c
    where c.namespace = r.namespace and c.key = r.key and c.id = w.client and c.waiting <= 1;
  if found then return; end if;
  update holdfast.client c set waiting = c.waiting - 1, place = (
      select min(v.place) from holdfast.waiter v
        where v.namespace = r.namespace and v.key = r.key and v.client = w.client)
    where c.namespace = r.namespace and c.key = r.key and c.id = w.client;
end $$;

-- Sends a push, which is delivered when this batch has committed. The channel of a client is
-- known only to that client and to this schema; no channel has a name of more than 63 bytes. A
-- message that is too long for NOTIFY becomes a question mark: the client asks instead. With a full
-- queue of messages the commit would fail, and with it the handoff. Any role can fill the queue, so
-- before that no message is sent: the client asks in time without one.
create or replace function holdfast.push_2(client text, message text) returns void
language sql volatile as $$
  select case when octet_length(client) between 1 and 48
      and pg_notification_queue_usage() < 0.9 then
    pg_notify('holdfast:' || client,
      case when octet_length(message) < 8000 then message else '?' end) end
$$;

-- Drops what has expired: holders in a slice, tombstones, the mark, and clients that were silent
-- for too long.
create or replace function holdfast.expire_2(
  inout r holdfast.name, now_us bigint, inout slice integer, out behind boolean
) language plpgsql as $$
declare
  done integer := 0;
  l holdfast.lease;
  gone_client text;
  dropped integer;
begin
  behind := false;
  loop
    l := holdfast.next_to_expire_2(r);
    exit when l.owner is null or l.expiry > now_us;
    if done > 0 then
      behind := slice = 0;
      exit when behind;
      slice := slice - 1;
    end if;
    r := holdfast.lapse_2(r, l);
    done := done + 1;
  end loop;
  if r.last_tombstone > 0 then
    delete from holdfast.tombstone t where t.ctid = any (array(
      select o.ctid from holdfast.tombstone o
        where o.namespace = r.namespace and o.key = r.key and o.until <= now_us
        order by o.until limit holdfast.max_tombstones_2()));
    get diagnostics dropped = row_count;
    if r.last_tombstone <= now_us and dropped < holdfast.max_tombstones_2() then
      r.last_tombstone := 0;
    end if;
  end if;
  if r.mark_until <= now_us then r.mark_until := null; end if;
  if r.waiting = 0 or r.silent > now_us then return; end if;
  for step in 1 .. holdfast.max_dropped_2() loop
    delete from holdfast.client c where c.ctid = (
      select o.ctid from holdfast.client o
        where o.namespace = r.namespace and o.key = r.key and o.gone <= now_us
        order by o.gone limit 1
    ) returning c.id into gone_client;
    exit when not found;
    delete from holdfast.waiter w
      where w.namespace = r.namespace and w.key = r.key and w.client = gone_client;
    get diagnostics dropped = row_count;
    r.waiting := greatest(r.waiting - dropped, 0);
  end loop;
  select coalesce(min(c.gone), 0) into r.silent from holdfast.client c
    where c.namespace = r.namespace and c.key = r.key;
end $$;

-- Serves the queue from its head for as long as the head fits. With a mark, every waiter is told
-- instead that the work is done. No name is handed off before \`grants_from\` (run.sql).
create or replace function holdfast.serve_2(
  inout r holdfast.name, now_us bigint, grants_from bigint, inout slice integer,
  inout behind boolean
) language plpgsql as $$
declare
  done integer := 0;
  w holdfast.waiter;
  token bigint;
  head record;
begin
  while r.waiting > 0 loop
    -- An exclusive holder is in the way of every waiter.
    exit when r.mark_until is null and ((r.lease).owner is not null or now_us < grants_from);
    -- The first waiter whose client is not suspect. As a join, a plan could read the whole queue.
    select v as waiter, (select c.connection from holdfast.client c
        where c.namespace = r.namespace and c.key = r.key and c.id = v.client) as connection
      into head from holdfast.waiter v
      where v.namespace = r.namespace and v.key = r.key and v.place = (
        select c.place from holdfast.client c
          where c.namespace = r.namespace and c.key = r.key and not c.suspect
          order by c.place limit 1);
    exit when not found;
    w := head.waiter;
    token := holdfast.next_token_2(r.last, now_us);
    exit when r.mark_until is null and (token > holdfast.max_token_2()
      or not holdfast.is_free_2(r, now_us)
        and not holdfast.may_join_2(r, w.exclusive, w.weight, w.weight_limit));
    if done > 0 then
      behind := slice = 0;
      exit when behind;
      slice := slice - 1;
    end if;
    done := done + 1;
    if r.mark_until is not null then
      r := holdfast.drop_waiter_2(r, w);
      perform holdfast.push_2(w.client,
        json_build_array('m', r.key, w.owner, r.mark_token, r.mark_meta)::text);
    elsif holdfast.is_reachable_2(head.connection) then
      r := holdfast.drop_waiter_2(r, w);
      if not holdfast.is_noted_2(w.ttl, now_us) then
        perform holdfast.note_2(w.ttl, now_us);
      end if;
      r := holdfast.put_holder_2(r, w.exclusive, holdfast.offer_to_2(w, token, now_us));
      perform holdfast.push_2(w.client, json_build_array(
        'g', r.key, w.owner, token, w.span, now_us, now_us + w.offer)::text);
    else
      update holdfast.client c set suspect = true
        where c.namespace = r.namespace and c.key = r.key and c.id = w.client;
    end if;
  end loop;
end $$;

-- From commands.sql
-- The commands. Each changes the row \`r\` of its name, after the upkeep (apply.sql), and replies.

-- Leaves a tombstone: nothing that is still under way for this owner may act until it ends. A
-- revocation keeps its reason.
create or replace function holdfast.leave_tombstone_2(
  inout r holdfast.name, ended text, until bigint, now_us bigint, reason text
) language plpgsql as $$
begin
  r.last_tombstone := greatest(r.last_tombstone, until);
  insert into holdfast.tombstone as t
    values (r.namespace, r.key, ended, leave_tombstone_2.until, leave_tombstone_2.reason)
    on conflict (namespace, key, owner) do update set
      until = case when t.until > now_us then greatest(t.until, excluded.until)
        else excluded.until end,
      reason = coalesce(excluded.reason, case when t.until > now_us then t.reason end);
end $$;

create or replace function holdfast.has_tombstone_2(r holdfast.name, asker text, now_us bigint)
returns boolean language plpgsql as $$
begin
  return r.last_tombstone > now_us and exists (select from holdfast.tombstone t where
    t.namespace = r.namespace and t.key = r.key and t.owner = asker and t.until > now_us);
end $$;

create or replace function holdfast.acquire_2(
  inout r holdfast.name, c holdfast.command_2, asker text, now_us bigint, grants_from bigint,
  out reply text
) language plpgsql as $$
declare
  l holdfast.lease;
  w holdfast.waiter;
  token bigint;
  x record;
begin
  if not holdfast.are_terms_valid_2(c) then
    reply := 'U["t"]';
    return;
  end if;
  if now_us > c.not_after then
    reply := 'L';
    return;
  end if;
  if holdfast.has_tombstone_2(r, asker, now_us) then
    reply := 'E';
    return;
  end if;
  if not holdfast.is_credible_2(c.seen, r.last, now_us) then
    reply := 'U["s"]';
    return;
  end if;
  r.last := holdfast.learned_2(r.last, c.seen, now_us);
  x := holdfast.holder_of_2(r, asker, now_us);
  r := x.r;
  l := x.l;
  if l.owner is not null then
    x := holdfast.confirm_2(r, l, now_us);
    r := x.r;
    l := x.l;
    reply := 'g' || json_build_array(l.token, l.span, l.expiry - now_us);
    return;
  end if;
  if r.mark_until is not null then
    reply := 'M' || holdfast.mark_json_2(r, now_us)::text;
    return;
  end if;
  w.exclusive := c.is_exclusive; w.weight := c.weight; w.weight_limit := c.weight_limit;
  if r.waiting > 0 and exists (select from holdfast.waiter v where v.namespace = r.namespace
      and v.key = r.key and v.owner = asker) then
    reply := 'Q' || jsonb_build_array(null, holdfast.blockage_2(r, w, now_us, grants_from))::text;
    return;
  end if;
  token := holdfast.next_token_2(r.last, now_us);
  if token > holdfast.max_token_2() then
    reply := 'U["l"]';
  elsif now_us >= grants_from and (holdfast.is_free_2(r, now_us)
      or holdfast.may_join_2(r, c.is_exclusive, c.weight, c.weight_limit))
    and not (r.waiting > 0 and exists (select from holdfast.client o
      where o.namespace = r.namespace and o.key = r.key and not o.suspect)) then
    r := holdfast.put_holder_2(
      r, c.is_exclusive, holdfast.lease_of_2(c, asker, token, now_us));
    reply := 'G' || token;
  elsif not c.may_wait then
    reply := 'B' || jsonb_build_array(holdfast.blockage_2(r, w, now_us, grants_from))::text;
  elsif c.offer > holdfast.max_lease_us_2()
    or c.touch not between holdfast.min_touch_us_2() and holdfast.max_touch_us_2() then
    reply := 'U["t"]';
  else
    reply := 'Q' || jsonb_build_array(
      r.waiting, holdfast.blockage_2(r, w, now_us, grants_from))::text;
    w.owner := asker; w.client := c.client; w.ttl := c.ttl; w.offer := c.offer;
    w.span := c.span; w.meta := c.meta;
    r := holdfast.enqueue_2(r, w, c.touch, now_us);
  end if;
end $$;

-- The first word of a waiter about its grant gives it the full lease, once.
create or replace function holdfast.confirm_2(
  inout r holdfast.name, inout l holdfast.lease, now_us bigint
) language plpgsql as $$
begin
  if l.confirmed then return; end if;
  if not holdfast.is_noted_2(l.ttl, now_us) then perform holdfast.note_2(l.ttl, now_us); end if;
  l := holdfast.extended_2(l, null::bigint, null::text, now_us);
  r := holdfast.update_holder_2(r, l);
end $$;

-- A renewal or a confirm.
create or replace function holdfast.extend_2(
  inout r holdfast.name, c holdfast.command_2, asker text, now_us bigint, out reply text
) language plpgsql as $$
declare
  l holdfast.lease;
  x record;
begin
  if c.verb = 'renew' then
    if c.ttl > holdfast.max_lease_us_2() then
      reply := 'U["t"]';
      return;
    end if;
    if now_us > c.not_after then
      reply := 'L';
      return;
    end if;
    r.last := holdfast.learned_2(r.last, c.seen, now_us);
  end if;
  x := holdfast.holder_of_2(r, asker, now_us);
  r := x.r;
  l := x.l;
  if l.owner is null then
    reply := holdfast.gone_2(r, asker, now_us);
    return;
  end if;
  if c.verb = 'renew' then
    l := holdfast.extended_2(l, c.ttl, c.heir, now_us);
    r := holdfast.update_holder_2(r, l);
  else
    x := holdfast.confirm_2(r, l, now_us);
    r := x.r;
    l := x.l;
  end if;
  reply := holdfast.renewed_2(l, r.waiting, now_us);
end $$;

create or replace function holdfast.release_2(
  inout r holdfast.name, c holdfast.command_2, asker text, now_us bigint, grants_from bigint,
  inout slice integer, inout behind boolean, out reply text
) language plpgsql as $$
declare
  until constant bigint := least(c.tombstone, now_us + holdfast.max_lease_us_2());
  l holdfast.lease;
  next holdfast.lease;
  w holdfast.waiter;
  x record;
begin
  if until > now_us then r := holdfast.leave_tombstone_2(
      r, asker, until, now_us, null::text); end if;
  x := holdfast.holder_of_2(r, asker, now_us);
  r := x.r;
  l := x.l;
  if l.owner is not null then
    r := holdfast.drop_holder_2(r, l);
    if c.ttl is not null then
      r.mark_until := now_us + c.ttl;
      r.mark_token := l.token;
      r.mark_meta := c.meta;
    end if;
  elsif r.waiting > 0 then
    select * into w from holdfast.waiter v
      where v.namespace = r.namespace and v.key = r.key and v.owner = asker;
    if found then r := holdfast.drop_waiter_2(r, w); end if;
  end if;
  if l.owner is not null or w.owner is not null then
    x := holdfast.serve_2(r, now_us, grants_from, slice, behind);
    r := x.r; slice := x.slice; behind := x.behind;
  end if;
  next := case when r.shared = 0 then r.lease else holdfast.next_to_expire_2(r) end;
  reply := holdfast.released_2(l.owner is not null, next, behind and r.waiting > 0, now_us);
end $$;

create or replace function holdfast.touch_2(
  r holdfast.name, toucher text, now_us bigint, grants_from bigint, behind boolean
) returns text language plpgsql as $$
declare
  offered integer := 0;
  grants jsonb := '[]';
  waiting integer := 0;
  l constant holdfast.lease := r.lease;
  w holdfast.waiter;
begin
  if l.owner is not null then
    if l.client = toucher and not l.confirmed then
      offered := 1;
      if l.expiry > now_us then
        grants := jsonb_build_array(
          jsonb_build_array(l.owner, l.token, l.span, l.granted, l.expiry));
      end if;
    end if;
  elsif r.shared > 0 then
    select count(*), coalesce(jsonb_agg(
        jsonb_build_array(o.owner, o.token, o.span, o.granted, o.expiry) order by o.token)
        filter (where o.nth <= holdfast.slice_2() and o.expiry > now_us), '[]')
      into offered, grants
      from (select h.*, row_number() over (order by h.token) as nth from holdfast.holder h
        where h.namespace = r.namespace and h.key = r.key and h.client = toucher
          and not h.confirmed order by h.token limit holdfast.slice_2() + 1) o;
  end if;
  if r.waiting > 0 then
    select c.waiting into waiting from holdfast.client c
      where c.namespace = r.namespace and c.key = r.key and c.id = toucher;
    -- The request that \`grants_from\` keeps waiting: that of the first waiter.
    if now_us < grants_from then
      select v.* into w from holdfast.waiter v
        where v.namespace = r.namespace and v.key = r.key and v.place = (
          select min(c.place) from holdfast.client c
            where c.namespace = r.namespace and c.key = r.key and not c.suspect);
    end if;
  end if;
  return 'T' || jsonb_build_array(coalesce(waiting, 0),
    offered > jsonb_array_length(grants) or behind and r.waiting > 0, grants,
    holdfast.blockage_2(r, w, now_us, grants_from))::text;
end $$;

create or replace function holdfast.revoke_2(
  inout r holdfast.name, c holdfast.command_2, revoked bigint, now_us bigint, grants_from bigint,
  inout slice integer, inout behind boolean, out reply text
) language plpgsql as $$
declare
  l holdfast.lease := r.lease;
  x record;
begin
  if r.mark_until is not null and r.mark_token = revoked then
    r.mark_until := null;
    reply := 'V[true]';
    return;
  end if;
  if r.shared > 0 then
    select (holdfast.as_lease_2(h)).* into l from holdfast.holder h
      where h.namespace = r.namespace and h.key = r.key and h.token <= revoked
      order by h.token desc limit 1;
  end if;
  if l.owner is null or revoked not between l.token and l.token + l.span - 1
    or l.expiry <= now_us then
    reply := 'V[false]';
    return;
  end if;
  r := holdfast.drop_holder_2(r, l);
  r := holdfast.leave_tombstone_2(r, l.owner, l.expiry, now_us, c.reason);
  perform holdfast.push_2(l.client,
    json_build_array('v', r.key, l.owner, l.token, c.reason)::text);
  x := holdfast.serve_2(r, now_us, grants_from, slice, behind);
  r := x.r; slice := x.slice; behind := x.behind;
  reply := 'V[true]';
end $$;

-- From apply.sql
-- The ledger (rules/ledger.ts): what a command does to the state of one name at one instant.

-- Makes the rows of the names that have none, from the floor of the namespace. The floor is read
-- by a statement after the insert: it then has the tokens of rows that were removed before. In
-- other isolation levels that statement would not see them.
create or replace function holdfast.make_rows_2(namespace text, names text[]) returns void
language plpgsql as $$
declare
  missing text[];
  start bigint;
begin
  missing := array(
    select distinct k collate "C" from unnest(names) k
      where not exists (select from holdfast.name o
        where o.namespace = make_rows_2.namespace and o.key = k)
      order by 1);
  if missing = '{}' then return; end if;
  if current_setting('transaction_isolation') <> 'read committed' then
    raise 'holdfast needs the isolation level "read committed"'
      using errcode = 'LF002', hint = 'Set default_transaction_isolation for this connection.';
  end if;
  insert into holdfast.name (namespace, key) select make_rows_2.namespace, k from unnest(missing) k
    on conflict do nothing;
  select s.floor into start from holdfast.namespace s where s.name = make_rows_2.namespace;
  if start > 0 then
    update holdfast.name o set last = start
      where o.namespace = make_rows_2.namespace and o.key = any (missing) and o.last < start;
  end if;
end $$;

-- A name without a row has no state: only these commands can give it some.
create or replace function holdfast.needs_row_2(c holdfast.command_2) returns boolean
language sql immutable as $$
  select c.verb in ('acquire', 'renew') or coalesce(c.tombstone > 0, false)
$$;

-- The ttl of the lease that a command makes or extends. A confirm and a handoff note it themselves.
create or replace function holdfast.noted_ttl_2(c holdfast.command_2) returns bigint
language sql immutable as $$
  select case when c.verb in ('acquire', 'renew') then c.ttl else 0 end
$$;

-- Notes the ttl of a command where that is due (run.sql). Returns the time from which free names
-- are granted. With a synchronous standby no commit is lost, and they never wait.
create or replace function holdfast.grants_from_2(
  c holdfast.command_2, is_synchronous boolean, now_us bigint
) returns bigint language sql volatile as $$
  select case when holdfast.is_noted_2(holdfast.noted_ttl_2(c), now_us) then 0
    else least(holdfast.note_2(holdfast.noted_ttl_2(c), now_us),
      case when is_synchronous then 0 end) end
$$;

-- The row of a name, locked; a row without state if there is none and none is needed. A row lock is
-- written to the log. So a commit that only tells a grant again waits for the disk and for
-- standbys, and with it the commit of that grant, which may have given up waiting.
create or replace function holdfast.lock_row_2(
  namespace text, name text, is_needed boolean, out r holdfast.name, out is_found boolean
) language plpgsql as $$
begin
  for attempt in 1 .. 2 loop
    select * into r from holdfast.name o
      where o.namespace = lock_row_2.namespace and o.key = lock_row_2.name for update;
    is_found := found;
    exit when is_found or not is_needed or attempt = 2;
    perform holdfast.make_rows_2(namespace, array[name]);
  end loop;
  if is_found then return; end if;
  r.namespace := namespace; r.key := name; r.last := 0; r.shared := 0; r.shared_weight := 0;
  r.waiting := 0; r.place := 0; r.silent := 0; r.last_tombstone := 0;
end $$;

-- One command to a name, whose row is locked; the clock was read afterwards. \`subject\` is the
-- owner, client or token of the command. \`slice\` is what is left of the slice of the batch.
create or replace function holdfast.apply_2(
  r holdfast.name, is_found boolean, subject text, c holdfast.command_2, now_us bigint,
  grants_from bigint, inout slice integer, out reply text
) language plpgsql as $$
declare
  before constant holdfast.name := r;
  behind boolean := false;
  new_gone bigint;
  x record;
begin
  if (r.lease).expiry <= now_us or not holdfast.needs_no_upkeep_2(r, now_us) then
    x := holdfast.expire_2(r, now_us, slice);
    r := x.r; slice := x.slice; behind := x.behind;
  end if;
  if r.waiting > 0 then
    if c.verb in ('acquire', 'touch') then
      update holdfast.client o set suspect = false,
        gone = now_us + holdfast.silent_periods_2() * o.touch,
        connection = holdfast.connection_2()
        where o.namespace = r.namespace and o.key = r.key and o.id = coalesce(c.client, subject)
        returning o.gone into new_gone;
      r.silent := least(r.silent, new_gone);
    end if;
    -- An exclusive holder is in the way of every waiter.
    if (r.lease).owner is null or r.mark_until is not null then
      x := holdfast.serve_2(r, now_us, grants_from, slice, behind);
      r := x.r; slice := x.slice; behind := x.behind;
    end if;
  end if;
  case c.verb
    when 'release' then
      x := holdfast.release_2(r, c, subject, now_us, grants_from, slice, behind);
      r := x.r; slice := x.slice; reply := x.reply;
    when 'acquire' then
      x := holdfast.acquire_2(r, c, subject, now_us, grants_from);
      r := x.r; reply := x.reply;
    when 'renew', 'confirm' then
      x := holdfast.extend_2(r, c, subject, now_us);
      r := x.r; reply := x.reply;
    when 'touch' then
      reply := holdfast.touch_2(r, subject, now_us, grants_from, behind);
    when 'inspect' then
      reply := 'I' || holdfast.view_2(r, now_us)::text;
    when 'revoke' then
      x := holdfast.revoke_2(r, c, subject::bigint, now_us, grants_from, slice, behind);
      r := x.r; slice := x.slice; reply := x.reply;
  end case;
  if r is not distinct from before then return; end if;
  if not is_found then
    raise 'the batch changes a name that has no row' using errcode = 'serialization_failure';
  end if;
  update holdfast.name o set
    last = r.last, shared = r.shared, shared_weight = r.shared_weight, waiting = r.waiting,
    place = r.place, silent = r.silent, last_tombstone = r.last_tombstone, lease = r.lease,
    mark_until = r.mark_until, mark_token = r.mark_token, mark_meta = r.mark_meta
    where o.namespace = r.namespace and o.key = r.key;
end $$;

-- The same for a command of a batch in which damaged rows failed a command: only that one fails.
create or replace function holdfast.apply_carefully_2(
  r holdfast.name, is_found boolean, subject text, c holdfast.command_2, now_us bigint,
  grants_from bigint, inout slice integer, out reply text
) language plpgsql as $$
declare
  x record;
begin
  x := holdfast.apply_2(r, is_found, subject, c, now_us, grants_from, slice);
  slice := x.slice; reply := x.reply;
exception when data_exception or integrity_constraint_violation then
  reply := '!' || to_json(sqlerrm);
end $$;

-- From execute.sql
-- The entry: runs the commands of a batch in order, at one instant, in one statement.
--
-- commands: each for as many of the next \`names\` as it says, with a subject for each: the owner of
--   an acquire, confirm, renew or release; the client of a touch; the token of a revoke. No name is
--   twice in one command.
-- is_synchronous: no acknowledged commit is lost in a failover (synchronous replication).
-- returns: the time, a space, the run of the server; then a line for each reply (replies.sql).
--
-- Most commands are about a name that has nothing but an exclusive holder: one UPDATE does them,
-- for one name or for all names of a command. All other commands go through apply_2. Both follow
-- the same rules (rules.sql). A damaged row fails the commands about its own name only: with an
-- error where the batch has no others, otherwise with a reply.

-- The place in the command, the subject and the row of each name, in the order of the names. The
-- rows are found one by one: as a join of two tables, a plan could read the whole namespace.
create or replace function holdfast.rows_of_2(namespace text, names text[], subjects text[])
returns table (nth bigint, subject text, row_id tid) language sql stable as $$
  select u.nth, u.subject, (select o.ctid from holdfast.name o
      where o.namespace = rows_of_2.namespace and o.key = u.name)
    from unnest(names, subjects) with ordinality as u (name, subject, nth)
    order by u.name collate "C"
$$;

-- One command for many names, in their order. The reply is null where apply_2 has to judge.
create or replace function holdfast.apply_to_many_2(
  namespace text, names text[], subjects text[], c holdfast.command_2, now_us bigint
) returns text[] language plpgsql as $$
declare
  replies text[] := array_fill(null::text, array[cardinality(names)]);
  x record;
begin
  if c.verb = 'acquire' and c.is_exclusive and holdfast.is_noted_2(c.ttl, now_us) then
    for x in
      update holdfast.name o set
        last = holdfast.next_token_2(greatest(o.last, c.seen), now_us) + c.span - 1,
        lease = holdfast.lease_of_2(
          c, u.subject, holdfast.next_token_2(greatest(o.last, c.seen), now_us), now_us)
      from holdfast.rows_of_2(apply_to_many_2.namespace, names, subjects) u
      where o.ctid = u.row_id and holdfast.may_grant_2(o, c, now_us)
      returning u.nth, 'G' || (o.lease).token as reply
    loop
      replies[x.nth] := x.reply;
    end loop;
  elsif c.verb = 'release' and c.tombstone = 0 and c.ttl is null then
    for x in
      update holdfast.name o set lease = null
      from holdfast.rows_of_2(apply_to_many_2.namespace, names, subjects) u
      where o.ctid = u.row_id and holdfast.has_single_holder_2(o)
        and holdfast.is_held_by_2(o, u.subject, now_us)
      returning u.nth
    loop
      replies[x.nth] := 'R';
    end loop;
  elsif c.verb = 'renew' and holdfast.is_noted_2(c.ttl, now_us) then
    for x in
      update holdfast.name o set
        last = holdfast.learned_2(o.last, c.seen, now_us),
        lease = holdfast.extended_2(o.lease, c.ttl, c.heir, now_us)
      from holdfast.rows_of_2(apply_to_many_2.namespace, names, subjects) u
      where o.ctid = u.row_id and holdfast.may_extend_2(o, c, now_us)
        and holdfast.is_held_by_2(o, u.subject, now_us)
      returning u.nth, holdfast.renewed_2(o.lease, o.waiting, now_us) as reply
    loop
      replies[x.nth] := x.reply;
    end loop;
  end if;
  return replies;
end $$;

-- Locks the rows of a batch in the order of their names, after it has made the missing ones in that
-- order: so two batches never wait for each other in a cycle. Returns the names, with null for
-- those that have no row: a row that is made after this is not locked, so to this batch its name
-- has none. Where a row that is needed was removed meanwhile, the batch fails: it is sent again.
create or replace function holdfast.lock_rows_2(namespace text, names text[], makes_rows boolean)
returns text[] language plpgsql as $$
declare
  locked text[];
begin
  if makes_rows then perform holdfast.make_rows_2(namespace, names); end if;
  select array_agg(l.key) into locked from (
    select o.key from holdfast.name o
      where o.namespace = lock_rows_2.namespace and o.key = any (names)
      order by o.key for update) l;
  if cardinality(locked) = cardinality(names) then return names; end if;
  names := array(select case when u.name = any (locked) then u.name end
    from unnest(names) with ordinality as u (name, nth) order by u.nth);
  if makes_rows and array_position(names, null) is not null then
    raise 'a name was removed meanwhile' using errcode = 'serialization_failure';
  end if;
  return names;
end $$;

-- The commands of a batch, whose rows are locked. The names are null for those without a row.
create or replace function holdfast.apply_all_2(
  is_synchronous boolean, namespace text, commands holdfast.command_2[], names text[],
  subjects text[], is_careful boolean
) returns text language plpgsql as $$
declare
  now_us constant bigint := holdfast.clock_2();
  slice integer := holdfast.slice_2();
  done integer := 0;
  grants_from bigint;
  c holdfast.command_2;
  locked record;
  x record;
  own text[];
  replies text[] := '{}';
begin
  foreach c in array commands loop
    grants_from := holdfast.grants_from_2(c, is_synchronous, now_us);
    own := case when not is_careful then holdfast.apply_to_many_2(namespace,
      names[done + 1 : done + c.names], subjects[done + 1 : done + c.names], c, now_us) end;
    for nth in 1 .. c.names loop
      if own[nth] is not null then continue; end if;
      locked := holdfast.lock_row_2(namespace, names[done + nth], false);
      if is_careful then
        x := holdfast.apply_carefully_2(
          locked.r, locked.is_found, subjects[done + nth], c, now_us, grants_from, slice);
      else
        x := holdfast.apply_2(
          locked.r, locked.is_found, subjects[done + nth], c, now_us, grants_from, slice);
      end if;
      slice := x.slice;
      own[nth] := x.reply;
    end loop;
    replies := replies || own;
    done := done + c.names;
  end loop;
  return now_us || holdfast.run_2() || array_to_string(replies, chr(10));
end $$;

-- The time of a single name is read before its row is locked. Where the UPDATE waits for another
-- batch, it judges the new row, and counts as having run at its earlier time: a lease only gets
-- shorter by that. The limit "not after" is the exception, because its sender may have given up
-- meanwhile: it is judged by the clock after the wait. The UPDATE judges a row again only if the
-- other transaction changed it, so the limit is judged once more at the end.
create or replace function holdfast.execute_2(
  namespace text, is_synchronous boolean, commands holdfast.command_2[], names text[],
  subjects text[]
) returns text language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '5s'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
  now_us bigint := holdfast.clock_2();
  c holdfast.command_2;
  r holdfast.name;
  is_found boolean := false;
  next holdfast.lease;
  x record;
  durability text;
  reply text;
  replies text[];
begin
  -- A warning is the only sign that the server gave up waiting for a synchronous standby. It comes
  -- with the commit, so this is set for the transaction and not for the function.
  if current_setting('client_min_messages') = 'error' then
    perform set_config('client_min_messages', 'warning', true);
  end if;
  if cardinality(names) = 1 then
    c := commands[1];
    if c.verb = 'acquire' then
      if c.is_exclusive and holdfast.is_noted_2(c.ttl, now_us) then
        update holdfast.name o set
          last = holdfast.next_token_2(greatest(o.last, c.seen), now_us) + c.span - 1,
          lease = holdfast.lease_of_2(
            c, subjects[1], holdfast.next_token_2(greatest(o.last, c.seen), now_us), now_us)
        where o.namespace = execute_2.namespace and o.key = names[1]
          and holdfast.may_grant_2(o, c, now_us) and c.not_after >= holdfast.clock_2()
        returning 'G' || (o.lease).token into reply;
      end if;
    elsif c.verb = 'release' then
      if c.tombstone = 0 and c.ttl is null then
        -- With waiters, this only locks the row.
        update holdfast.name o set lease = case when o.waiting > 0 then o.lease end
        where o.namespace = execute_2.namespace and o.key = names[1]
          and holdfast.needs_no_upkeep_2(o, now_us)
          and holdfast.is_held_by_2(o, subjects[1], now_us)
        returning o.* into r;
        is_found := found;
        if r.waiting = 0 then
          durability := holdfast.forgo_disk_2();
          reply := 'R';
        elsif is_found then
          -- The next holder waits for this answer: nothing but serve_2 is between the two.
          now_us := holdfast.clock_2();
          if holdfast.is_held_by_2(r, subjects[1], now_us)
            and holdfast.needs_no_upkeep_2(r, now_us) then
            r.lease := null;
            x := holdfast.serve_2(r, now_us, holdfast.grants_from_2(c, is_synchronous, now_us),
              holdfast.slice_2(), false);
            r := x.r;
            update holdfast.name o set last = r.last, shared = r.shared,
              shared_weight = r.shared_weight, waiting = r.waiting, lease = r.lease
            where o.namespace = r.namespace and o.key = r.key;
            next := case when r.shared = 0 then r.lease else holdfast.next_to_expire_2(r) end;
            reply := holdfast.released_2(true, next, x.behind and r.waiting > 0, now_us);
          end if;
        end if;
      end if;
    elsif c.verb in ('renew', 'confirm') then
      update holdfast.name o set
        last = holdfast.learned_2(o.last, coalesce(c.seen, 0), now_us),
        lease = holdfast.extended_2(o.lease, c.ttl, c.heir, now_us)
      where o.namespace = execute_2.namespace and o.key = names[1]
        and holdfast.may_extend_2(o, c, now_us) and holdfast.is_held_by_2(o, subjects[1], now_us)
        and holdfast.is_noted_2(coalesce(c.ttl, (o.lease).ttl), now_us)
        and coalesce(c.not_after >= holdfast.clock_2(), true)
      returning holdfast.renewed_2(o.lease, o.waiting, now_us) into reply;
    end if;
    if reply is not null then
      if c.not_after < holdfast.clock_2() then
        raise 'the command waited for too long' using errcode = 'serialization_failure';
      end if;
      return now_us || holdfast.run_2() || reply;
    end if;
    if not is_found then
      x := holdfast.lock_row_2(namespace, names[1], holdfast.needs_row_2(c));
      r := x.r;
      is_found := x.is_found;
    end if;
    now_us := holdfast.clock_2();
    x := holdfast.apply_2(r, is_found, subjects[1], c, now_us,
      holdfast.grants_from_2(c, is_synchronous, now_us), holdfast.slice_2());
    return now_us || holdfast.run_2() || x.reply;
  else
    -- Most batches are one command for names that have nothing but an exclusive holder. Otherwise
    -- the changes of this block are undone with their locks, so that all rows can be locked in
    -- order. The limit "not after" was judged before the wait for the last row.
    if cardinality(commands) = 1 and (commands[1]).verb in ('acquire', 'release', 'renew') then
      begin
        replies := holdfast.apply_to_many_2(namespace, names, subjects, commands[1], now_us);
        if array_position(replies, null) is null
          and coalesce((commands[1]).not_after >= holdfast.clock_2(), true) then
          return now_us || holdfast.run_2() || array_to_string(replies, chr(10));
        end if;
        raise 'not only such names' using errcode = 'LF000';
      exception when sqlstate 'LF000' or data_exception or integrity_constraint_violation then
      end;
    end if;
    names := holdfast.lock_rows_2(namespace, names, exists (
      select from unnest(commands) o where holdfast.needs_row_2(o)));
    begin
      return holdfast.apply_all_2(is_synchronous, namespace, commands, names, subjects, false);
    exception when data_exception or integrity_constraint_violation then
      return holdfast.apply_all_2(is_synchronous, namespace, commands, names, subjects, true);
    end;
  end if;
end $$;

-- From list.sql
-- The names in use whose key begins with \`prefix\`, after the key \`after\`, in the order of their
-- bytes. It looks at no more than \`max_rows\` rows, and locks none.
--
-- returns: the time; a line with the JSON of the key to go on after, or null at the end; then a
-- line [key, view] for each name.
create or replace function holdfast.list_2(
  namespace text, prefix text, after text, max_rows integer
) returns text language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  now_us constant bigint := holdfast.clock_2();
  r holdfast.name;
  view jsonb;
  looked integer := 0;
  lines text[] := '{}';
  following text;
begin
  for r in select * from holdfast.name o
    where o.namespace = list_2.namespace and o.key >= prefix and o.key > after order by o.key
  loop
    exit when not starts_with(r.key, prefix);
    if looked = max_rows then exit; end if;
    looked := looked + 1;
    following := r.key;
    if (r.lease).owner is null and r.shared = 0 and r.waiting = 0 and r.mark_until is null then
      continue;
    end if;
    view := holdfast.view_2(r, now_us);
    if view <> '[[], [], null]' then
      lines := lines || jsonb_build_array(r.key, view)::text;
    end if;
  end loop;
  if looked < max_rows then following := null; end if;
  return array_to_string(
    array[now_us::text, coalesce(to_json(following)::text, 'null')] || lines, chr(10));
end $$;

-- From fence.sql
-- The fence: a call in the user's own transaction that refuses a stale token.
--
-- Two fenced transactions of one name serialise on its row in fence_token: the second call waits
-- until the first transaction has ended. If that one committed a higher token, the second call
-- raises LF001; in repeatable read and serializable the row has changed since the snapshot, so
-- that Postgres raises 40001. The row is rolled back with its transaction: a token counts only if
-- the writes behind it do. The rows of the ledger are neither read nor locked, so that a long
-- fenced transaction delays no renewal.

create table if not exists holdfast.fence_token (
  namespace text collate "C" not null,
  name text collate "C" not null,
  -- The highest token of all transactions that committed.
  token bigint not null,
  used_at timestamptz not null,
  -- No call has found this row yet: the row is compared with the floor.
  is_new boolean not null,
  constraint fence_token_key primary key (namespace, name)
) with (
  fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000
);

-- The highest token of all rows that the sweeper removed. A name without a row counts as one that
-- was used with this token. The tokens of one namespace may come from several stores, so the floor
-- is made of tokens that are times, and compared with no others. The sweeper leaves rows with other
-- tokens, and rows whose token is not older than fence_age: no grant of today is below the floor.
create table if not exists holdfast.fence_floor (
  namespace text collate "C" not null,
  token bigint not null,
  constraint fence_floor_key primary key (namespace)
);

-- The sweeper removes a row that was not used for so long.
create or replace function holdfast.fence_age() returns interval
language sql immutable as $$ select interval '30 days' $$;

-- Whether a token is a time in microseconds, of the year 2001 or later. Stores that count, such as
-- etcd and ZooKeeper, have lower tokens.
create or replace function holdfast.is_time(token bigint) returns boolean
language sql immutable as $$ select token >= 1000000000000000 $$;

-- Returns the token; raises LF001 where a higher token was used.
--
-- Why a removed row is not missed: the sweeper raises the floor in the transaction that removes the
-- row, and a call that inserts a row looks afterwards, in a statement of its own.
-- Read committed: the insert has waited for the sweeper, and the later statement sees its floor.
-- An older snapshot sees the floor if the row was removed before the snapshot; it sees the row
-- itself if the row was used before and removed after; and if the row was used after the snapshot,
-- the transaction is older than fence_age, and is refused.
create or replace function holdfast.fence(name text, token bigint, namespace text default '')
returns bigint language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $$
declare
  inserted boolean;
  highest bigint;
begin
  -- Declared as \`strict\`, the function would let a null pass.
  if fence.name is null or fence.token is null or fence.namespace is null then
    raise exception using errcode = 'null_value_not_allowed',
      message = 'holdfast.fence needs a name, a token and a namespace that are not null.';
  end if;
  insert into holdfast.fence_token as kept (namespace, name, token, used_at, is_new)
    values (fence.namespace, fence.name, fence.token, clock_timestamp(), true)
    on conflict on constraint fence_token_key
      do update set token = excluded.token, used_at = excluded.used_at, is_new = false
      where kept.token <= excluded.token
    returning kept.is_new into inserted;
  if not inserted then return fence.token; end if;
  if inserted and transaction_timestamp() + holdfast.fence_age() <= clock_timestamp()
    and current_setting('transaction_isolation') <> 'read committed' then
    raise exception using errcode = 'serialization_failure',
      message = 'This transaction is too old for holdfast.fence. Begin it again.';
  end if;
  select max(seen.token) into highest from (
    select kept.token from holdfast.fence_token kept
      where kept.namespace = fence.namespace and kept.name = fence.name
    union all
    select floors.token from holdfast.fence_floor floors
      where floors.namespace = fence.namespace and holdfast.is_time(fence.token)
  ) seen;
  if inserted and highest = fence.token then return fence.token; end if;
  raise exception using errcode = 'LF001',
    message = format('The token %s for %L is stale: the token %s was used.',
      fence.token, fence.name, highest),
    hint = 'A newer holder of the lock has written. Roll back, and give up this work.';
end $$;

-- From sweep.sql
-- The sweeper removes rows of names and of fences that are long unused. It keeps the highest token
-- of the rows that it removes as a floor, in the same transaction: a name that comes back starts
-- there. One client at a time does one slice; all clients together go through all rows once in
-- ten minutes.
--
-- Lock order: the row of holdfast.sweep, then rows of names or fences that no transaction has
-- locked, then the floors, which no other function locks. So the sweeper waits for nobody, but for
-- the floors, and those only another sweeper of an older version locks.

create table if not exists holdfast.sweep (
  single boolean primary key default true check (single),
  -- No slice before this time.
  due timestamptz not null,
  -- Where the next slice begins.
  is_at_fences boolean not null,
  namespace text collate "C" not null,
  key text collate "C" not null
);
insert into holdfast.sweep values (true, '-infinity', false, '', '') on conflict do nothing;

-- Removes names that were not granted for \`age_us\`, among the next \`size\` in the order of their
-- keys. Returns the last key that was looked at; null after the last row. A name goes when nothing
-- of it is alive: no holder, no waiter, no mark and no tombstone; what is dead goes with it.
-- A batch that waits for such a row finds it gone, and is sent again (40001). A batch that inserts
-- the row reads the floor afterwards. Tokens ahead of the clock say nothing about the time.
create or replace function holdfast.sweep_names_2(
  inout namespace text, inout key text, size integer, age_us bigint
) language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off as $$
declare
  now_us bigint := extract(epoch from clock_timestamp()) * 1000000;
  edge record;
  idle tid[];
begin
  select n.namespace, n.key into edge from holdfast.name n
    where (n.namespace, n.key) > (sweep_names_2.namespace, sweep_names_2.key)
    order by n.namespace, n.key offset size - 1 limit 1;
  select array_agg(locked.ctid) into idle from (
    select n.ctid from holdfast.name n
      where (n.namespace, n.key) > (sweep_names_2.namespace, sweep_names_2.key)
        and (edge is null or (n.namespace, n.key) <= (edge.namespace, edge.key))
        and n.last not between now_us - age_us and now_us
        and ((n.lease).owner is null or (n.lease).expiry <= now_us)
        and (n.mark_until is null or n.mark_until <= now_us)
        and n.last_tombstone <= now_us
      for update skip locked
  ) locked;
  -- A later statement, because it sees all that happened before the rows were locked.
  select array_agg(n.ctid) into idle from holdfast.name n
    where n.ctid = any (idle)
      and (n.shared = 0 or not exists (select from holdfast.holder h
        where h.namespace = n.namespace and h.key = n.key and h.expiry > now_us))
      and (n.waiting = 0 or not exists (select from holdfast.client c
        where c.namespace = n.namespace and c.key = n.key and c.gone > now_us));
  if idle is not null then
    insert into holdfast.namespace as floors (name, floor)
      select n.namespace, max(n.last) from holdfast.name n
        where n.ctid = any (idle) group by n.namespace
      on conflict (name) do update set floor = greatest(floors.floor, excluded.floor);
    with gone as (
      delete from holdfast.name n where n.ctid = any (idle)
        returning n.namespace, n.key, n.shared, n.waiting, n.last_tombstone
    ), holders as (
      delete from holdfast.holder h using gone
        where gone.shared > 0 and h.namespace = gone.namespace and h.key = gone.key
    ), waiters as (
      delete from holdfast.waiter w using gone
        where gone.waiting > 0 and w.namespace = gone.namespace and w.key = gone.key
    ), clients as (
      delete from holdfast.client c using gone
        where gone.waiting > 0 and c.namespace = gone.namespace and c.key = gone.key
    )
    delete from holdfast.tombstone t using gone
      where gone.last_tombstone > 0 and t.namespace = gone.namespace and t.key = gone.key;
  end if;
  namespace := edge.namespace;
  key := edge.key;
end $$;

-- The same for rows of fences: fence.sql says why no stale token passes afterwards, and which
-- tokens may raise the floor.
create or replace function holdfast.sweep_fences_2(
  inout namespace text, inout name text, size integer, age interval
) language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off as $$
declare
  oldest constant timestamptz := clock_timestamp() - age;
  edge record;
  idle tid[];
begin
  select f.namespace, f.name into edge from holdfast.fence_token f
    where (f.namespace, f.name) > (sweep_fences_2.namespace, sweep_fences_2.name)
    order by f.namespace, f.name offset size - 1 limit 1;
  select array_agg(locked.ctid) into idle from (
    select f.ctid from holdfast.fence_token f
      where (f.namespace, f.name) > (sweep_fences_2.namespace, sweep_fences_2.name)
        and (edge is null or (f.namespace, f.name) <= (edge.namespace, edge.name))
        and f.used_at < oldest and holdfast.is_time(f.token)
        and f.token < extract(epoch from oldest) * 1000000
      for update skip locked
  ) locked;
  if idle is not null then
    insert into holdfast.fence_floor as floors (namespace, token)
      select f.namespace, max(f.token) from holdfast.fence_token f
        where f.ctid = any (idle) group by f.namespace
      on conflict on constraint fence_floor_key
        do update set token = greatest(floors.token, excluded.token);
    delete from holdfast.fence_token f where f.ctid = any (idle);
  end if;
  namespace := edge.namespace;
  name := edge.name;
end $$;

-- Does one slice of at most \`size\` rows, if one is due and no other client is at it. Returns
-- whether the next slice is due at once.
create or replace function holdfast.sweep_2(size integer) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  s holdfast.sweep;
begin
  -- An older snapshot would not see all holders and waiters of the rows that it locks.
  if current_setting('transaction_isolation') <> 'read committed' then return false; end if;
  select * into s from holdfast.sweep where due <= clock_timestamp() for update skip locked;
  if not found then return false; end if;
  if s.is_at_fences then
    select * into s.namespace, s.key
      from holdfast.sweep_fences_2(s.namespace, s.key, size, holdfast.fence_age());
  else
    select * into s.namespace, s.key
      from holdfast.sweep_names_2(s.namespace, s.key, size, 600000000::bigint);
  end if;
  if s.key is null then
    if s.is_at_fences then s.due := clock_timestamp() + interval '10 minutes'; end if;
    s.is_at_fences := not s.is_at_fences;
    s.namespace := '';
    s.key := '';
  end if;
  update holdfast.sweep
    set due = s.due, is_at_fences = s.is_at_fences, namespace = s.namespace, key = s.key;
  return s.due <= clock_timestamp();
end $$;

-- From rights.sql
-- A role with USAGE on the schema and EXECUTE on the entry functions can do everything.
revoke all on all functions in schema holdfast from public;

-- The default privileges of this role may have given others rights on the tables. A role that may
-- make a trigger there could have its own code run with the rights of this one.
do $$
declare
  other text;
begin
  for other in
    select distinct case a.grantee when 0 then 'public' else a.grantee::regrole::text end
      from pg_class c, aclexplode(c.relacl) a
      where c.relnamespace = 'holdfast'::regnamespace and a.grantee <> c.relowner
  loop
    execute 'revoke all on all tables in schema holdfast from ' || other || ' cascade';
  end loop;
end $$;

insert into holdfast.server (version, system, timeline)
  values (2, holdfast.system_2(), holdfast.timeline_2()) on conflict do nothing;
-- Not part of the insert: that would lock a row which batches may wait for.
update holdfast.server set version = 2 where version < 2;
`;
