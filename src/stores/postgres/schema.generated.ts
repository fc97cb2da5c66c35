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
  buried bigint not null default 0,
  -- The exclusive holder; the owner is null where there is none.
  token bigint not null default 0,
  granted bigint not null default 0,
  expiry bigint not null default 0,
  ttl bigint not null default 0,
  weight bigint not null default 1,
  most bigint not null default 9007199254740991,
  span integer not null default 1,
  confirmed boolean not null default true,
  owner text collate "C",
  client text collate "C",
  meta text,
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
  most bigint not null,
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
  most bigint not null,
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
      in ('holder_owner', 'holder_expiry', 'holder_most', 'holder_offer',
      'waiter_owner', 'waiter_client', 'client_place', 'client_gone', 'tombstone_end')) = 9 then
    return;
  end if;
  lock table holdfast.name in exclusive mode;
  create unique index if not exists holder_owner on holdfast.holder (namespace, key, owner);
  create index if not exists holder_expiry on holdfast.holder (namespace, key, expiry, token);
  create index if not exists holder_most on holdfast.holder (namespace, key, most);
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
create or replace function holdfast.timeline_1() returns text
language sql volatile set search_path = pg_catalog, pg_temp as $$
  select left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)
$$;

create or replace function holdfast.system_1() returns text
language sql volatile set search_path = pg_catalog, pg_temp as $$
  select system_identifier::text from pg_control_system()
$$;

-- Whether this commit may be lost in a crash although it was acknowledged.
create or replace function holdfast.is_relaxed_1() returns boolean language sql stable as $$
  select current_setting('synchronous_commit') = 'off' or current_setting('fsync') = 'off'
$$;

create or replace function holdfast.week_1(now_us bigint) returns integer
language sql immutable as $$
  select (now_us / 604800000000)::integer
$$;

-- Makes the marker of a new run. Commits were possibly lost if this is another server or timeline,
-- or if durability was relaxed. Otherwise a crash has lost nothing by itself, but it may have come
-- while names were not granted yet: the logged row keeps until when.
create or replace function holdfast.start_run_1(now_us bigint) returns void
language plpgsql as $$
declare
  s holdfast.server;
  this_system constant text := holdfast.system_1();
  this_timeline constant text := holdfast.timeline_1();
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
create or replace function holdfast.note_1(ttl bigint, now_us bigint) returns bigint
language plpgsql as $$
declare
  m holdfast.marker;
  counted constant bigint := case when ttl <= 3153600000000000
    then least(ttl, 86400000000) else 0 end;
  is_relaxed constant boolean := holdfast.is_relaxed_1();
  this_week constant integer := holdfast.week_1(now_us);
begin
  select * into m from holdfast.marker o
    where o.system = holdfast.system_1() and o.timeline = holdfast.timeline_1();
  if not found then
    perform holdfast.start_run_1(now_us);
    select * into m from holdfast.marker;
  end if;
  if m.grants_from > 0 then m.grants_from := holdfast.grants_from_1(m.grants_from, now_us); end if;
  if m.week <> this_week or m.longest < counted or m.relaxed < is_relaxed then
    update holdfast.server s set
      week = this_week,
      -- A clock that was set back forgets nothing.
      longest = greatest(60000000, counted, case when s.week >= this_week then s.longest
        else (select max(least(w.ttl, 86400000000)) from holdfast.waiter w) end),
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
create or replace function holdfast.grants_from_1(noted bigint, now_us bigint) returns bigint
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
create or replace function holdfast.forgo_disk_1() returns text language sql volatile as $$
  select set_config('synchronous_commit', 'off', true)
$$;

-- From short.sql
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

-- From holders.sql
-- Holders and waiters of one name. \`r\` is the row of the name, which the batch has locked; the
-- functions change it, and apply_1 writes it back.

-- Whether a request may join the holders (rules/fits.ts).
create or replace function holdfast.fits_1(
  r holdfast.name, is_exclusive boolean, weight bigint, most bigint
) returns boolean language plpgsql as $$
begin
  if r.owner is null and r.shared = 0 then return weight <= most; end if;
  if r.owner is not null or is_exclusive then return false; end if;
  return r.shared_weight + weight <= least(most, (
    select min(h.most) from holdfast.holder h where h.namespace = r.namespace and h.key = r.key
  ));
end $$;

-- The exclusive holder, in the form of a shared one.
create or replace function holdfast.exclusive_1(r holdfast.name) returns holdfast.holder
language plpgsql as $$
declare
  h holdfast.holder;
begin
  if r.owner is null then return null; end if;
  h.namespace := r.namespace; h.key := r.key; h.token := r.token; h.granted := r.granted;
  h.expiry := r.expiry; h.ttl := r.ttl; h.weight := r.weight; h.most := r.most;
  h.span := r.span; h.confirmed := r.confirmed; h.owner := r.owner; h.client := r.client;
  h.meta := r.meta;
  return h;
end $$;

-- The holder that expires first; of two that expire together, the older grant.
create or replace function holdfast.next_1(r holdfast.name) returns holdfast.holder
language plpgsql as $$
declare
  h holdfast.holder;
begin
  if r.owner is not null then return holdfast.exclusive_1(r); end if;
  if r.shared = 0 then return null; end if;
  select * into h from holdfast.holder o
    where o.namespace = r.namespace and o.key = r.key order by o.expiry, o.token limit 1;
  return h;
end $$;

-- Adds a holder. An exclusive one is in the row of the name.
create or replace function holdfast.put_holder_1(
  inout r holdfast.name, is_exclusive boolean, h holdfast.holder
) language plpgsql as $$
begin
  if is_exclusive then
    r.token := h.token; r.granted := h.granted; r.expiry := h.expiry; r.ttl := h.ttl;
    r.weight := h.weight; r.most := h.most; r.span := h.span; r.confirmed := h.confirmed;
    r.owner := h.owner; r.client := h.client; r.meta := h.meta;
  else
    h.namespace := r.namespace;
    h.key := r.key;
    insert into holdfast.holder values (h.*);
    r.shared := r.shared + 1;
    r.shared_weight := r.shared_weight + h.weight;
  end if;
end $$;

create or replace function holdfast.drop_holder_1(inout r holdfast.name, h holdfast.holder)
language plpgsql as $$
begin
  if r.owner = h.owner then
    r.owner := null; r.client := null; r.meta := null;
  else
    delete from holdfast.holder o
      where o.namespace = r.namespace and o.key = r.key and o.token = h.token;
    r.shared := greatest(r.shared - 1, 0);
    r.shared_weight := greatest(r.shared_weight - h.weight, 0);
  end if;
end $$;

-- Keeps the changed fields of a holder.
create or replace function holdfast.update_holder_1(inout r holdfast.name, h holdfast.holder)
language plpgsql as $$
begin
  if r.owner = h.owner then
    r.expiry := h.expiry; r.ttl := h.ttl; r.confirmed := h.confirmed; r.client := h.client;
  else
    update holdfast.holder o
      set expiry = h.expiry, ttl = h.ttl, confirmed = h.confirmed, client = h.client
      where o.namespace = r.namespace and o.key = r.key and o.token = h.token;
  end if;
end $$;

-- Removes an expired holder. One that never confirmed its grant makes its client a suspect, unless
-- the client has spoken since the grant ended.
create or replace function holdfast.lapse_1(inout r holdfast.name, h holdfast.holder)
language plpgsql as $$
begin
  r := holdfast.drop_holder_1(r, h);
  if h.confirmed or r.waiting = 0 then return; end if;
  update holdfast.client c set suspect = true
    where c.namespace = r.namespace and c.key = r.key and c.id = h.client
      and not c.suspect and c.gone - 3 * c.touch < h.expiry;
end $$;

-- The holder of an owner. One that has expired goes at once, however many are to be dropped before.
create or replace function holdfast.holder_of_1(
  inout r holdfast.name, holder_owner text, now_us bigint, out h holdfast.holder
) language plpgsql as $$
begin
  if r.owner = holder_owner then
    h := holdfast.exclusive_1(r);
  elsif r.shared > 0 then
    select * into h from holdfast.holder o
      where o.namespace = r.namespace and o.key = r.key and o.owner = holder_owner;
  end if;
  if h.owner is null or h.expiry > now_us then return; end if;
  r := holdfast.lapse_1(r, h);
  h := null;
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
create or replace function holdfast.connection_1() returns bigint language sql stable as $$
  select nullif(current_setting('holdfast.connection', true), '')::bigint
$$;

-- Whether a push may reach the client of this connection. Locks of one session never conflict, so
-- the lock of this connection proves nothing here.
create or replace function holdfast.is_reachable_1(connection bigint) returns boolean
language plpgsql as $$
begin
  return case when connection is null or connection = holdfast.connection_1() then true
    else not pg_try_advisory_xact_lock_shared(connection) end;
end $$;

create or replace function holdfast.enqueue_1(
  inout r holdfast.name, w holdfast.waiter, touch bigint, now_us bigint
) language plpgsql as $$
declare
  gone bigint := now_us + 3 * touch;
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
    values (r.namespace, r.key, w.client, r.place, touch, gone, 1, false, holdfast.connection_1())
    on conflict (namespace, key, id) do update set
      waiting = c.waiting + 1,
      touch = greatest(c.touch, excluded.touch),
      gone = greatest(c.gone, excluded.gone);
end $$;

-- The first waiter whose client is not suspect.
create or replace function holdfast.head_1(space text, name_key text, out w holdfast.waiter)
language plpgsql as $$
begin
  select v.* into w from holdfast.waiter v
    where v.namespace = space and v.key = name_key and v.place = (
      select c.place from holdfast.client c
        where c.namespace = space and c.key = name_key and not c.suspect
        order by c.place limit 1);
end $$;

-- Counts a removed waiter off its client, and removes the client with its last waiter. \`others\` is
-- how many waiters the name has left.
create or replace function holdfast.drop_client_1(w holdfast.waiter, others integer) returns void
language plpgsql as $$
declare
  first bigint;
begin
  if others > 0 then
    select min(v.place) into first from holdfast.waiter v
      where v.namespace = w.namespace and v.key = w.key and v.client = w.client;
  end if;
  if first is null then
    delete from holdfast.client c
      where c.namespace = w.namespace and c.key = w.key and c.id = w.client;
  else
    update holdfast.client c set waiting = c.waiting - 1, place = first
      where c.namespace = w.namespace and c.key = w.key and c.id = w.client;
  end if;
end $$;

create or replace function holdfast.drop_waiter_1(inout r holdfast.name, w holdfast.waiter)
language plpgsql as $$
begin
  delete from holdfast.waiter v
    where v.namespace = r.namespace and v.key = r.key and v.place = w.place;
  r.waiting := greatest(r.waiting - 1, 0);
  perform holdfast.drop_client_1(w, r.waiting);
end $$;

-- Sends a push, which is delivered when this batch has committed. The channel of a client is
-- known only to that client and to this schema; no channel has a name of more than 63 bytes. A
-- message that is too long for NOTIFY becomes a question mark: the client asks instead. With a full
-- queue of messages the commit would fail, and with it the handoff. Any role can fill the queue, so
-- before that no message is sent: the client asks in time without one.
create or replace function holdfast.push_1(client text, message text) returns void
language sql volatile as $$
  select case when octet_length(client) between 1 and 48
      and pg_notification_queue_usage() < 0.9 then
    pg_notify('holdfast:' || client,
      case when octet_length(message) < 8000 then message else '?' end) end
$$;

-- Drops what has expired: holders in a slice, tombstones, the mark, and clients that were silent
-- for too long.
create or replace function holdfast.expire_1(
  inout r holdfast.name, now_us bigint, inout slice integer, out behind boolean
) language plpgsql as $$
declare
  done integer := 0;
  h holdfast.holder;
  gone_client text;
  dropped integer;
begin
  behind := false;
  loop
    h := holdfast.next_1(r);
    exit when h.owner is null or h.expiry > now_us;
    if done > 0 then
      behind := slice = 0;
      exit when behind;
      slice := slice - 1;
    end if;
    r := holdfast.lapse_1(r, h);
    done := done + 1;
  end loop;
  if r.buried > 0 then
    delete from holdfast.tombstone t where t.ctid = any (array(
      select o.ctid from holdfast.tombstone o
        where o.namespace = r.namespace and o.key = r.key and o.until <= now_us
        order by o.until limit 16));
    get diagnostics dropped = row_count;
    if r.buried <= now_us and dropped < 16 then r.buried := 0; end if;
  end if;
  if r.mark_until <= now_us then r.mark_until := null; end if;
  if r.waiting = 0 or r.silent > now_us then return; end if;
  for done in 1 .. 64 loop
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
create or replace function holdfast.serve_1(
  inout r holdfast.name, now_us bigint, grants_from bigint, inout slice integer,
  inout behind boolean
) language plpgsql as $$
declare
  done integer := 0;
  w holdfast.waiter;
  h holdfast.holder;
begin
  while r.waiting > 0 loop
    w := holdfast.head_1(r.namespace, r.key);
    exit when w.place is null;
    if r.mark_until is null then
      exit when now_us < grants_from or not holdfast.fits_1(r, w.exclusive, w.weight, w.most);
      h.token := greatest(now_us, r.last + 1);
      exit when h.token > 9007199254739967;
    end if;
    if done > 0 then
      if slice = 0 then behind := true; end if;
      exit when slice = 0;
      slice := slice - 1;
    end if;
    done := done + 1;
    if r.mark_until is null then
      update holdfast.client c set suspect = true
        where c.namespace = r.namespace and c.key = r.key and c.id = w.client
          and not holdfast.is_reachable_1(c.connection);
      if found then continue; end if;
    end if;
    r := holdfast.drop_waiter_1(r, w);
    if r.mark_until is not null then
      perform holdfast.push_1(w.client,
        json_build_array('m', r.key, w.owner, r.mark_token, r.mark_meta)::text);
      continue;
    end if;
    perform holdfast.note_1(w.ttl, now_us) where not holdfast.is_noted_1(w.ttl, now_us);
    h.granted := now_us; h.expiry := now_us + w.offer; h.ttl := w.ttl; h.weight := w.weight;
    h.most := w.most; h.span := w.span; h.confirmed := false; h.owner := w.owner;
    h.client := w.client; h.meta := w.meta;
    r.last := h.token + h.span - 1;
    r := holdfast.put_holder_1(r, w.exclusive, h);
    perform holdfast.push_1(w.client, json_build_array(
      'g', r.key, h.owner, h.token, h.span, h.granted, h.expiry)::text);
  end loop;
end $$;

-- The handoff of a name whose holder leaves, to its first waiter, if that can be reached and no
-- other work is due. Otherwise null, and nothing is changed. The caller has locked the row, and
-- found that the holder lives: what it found is judged again by the clock after the lock.
create or replace function holdfast.hand_off_1(space text, name_key text, waiters integer)
returns text language plpgsql as $$
declare
  now_us constant bigint := holdfast.clock_1();
  w holdfast.waiter;
  reply text;
begin
  delete from holdfast.waiter v
    where v.namespace = space and v.key = name_key and v.exclusive and v.weight <= v.most
      and holdfast.is_noted_1(v.ttl, now_us)
      and v.place = (
        select case when holdfast.is_reachable_1(c.connection) then c.place end from (
          select o.place, o.connection from holdfast.client o
            where o.namespace = space and o.key = name_key and not o.suspect
            order by o.place limit 1) c)
      and exists (select from holdfast.name o where o.namespace = space and o.key = name_key
        and o.expiry > now_us and o.silent > now_us and o.last < 9007199254739967)
    returning v.* into w;
  if not found then return null; end if;
  perform holdfast.drop_client_1(w, waiters - 1);
  update holdfast.name o set
    last = greatest(now_us, o.last + 1) + w.span - 1, waiting = waiters - 1,
    token = greatest(now_us, o.last + 1), granted = now_us, expiry = now_us + w.offer, ttl = w.ttl,
    weight = w.weight, most = w.most, span = w.span, confirmed = false, owner = w.owner,
    client = w.client, meta = w.meta
    where o.namespace = space and o.key = name_key
    returning json_build_array('g', name_key, w.owner, o.token, w.span, now_us, o.expiry)::text
      into reply;
  perform holdfast.push_1(w.client, reply);
  return now_us || holdfast.run_1() || 'R[true, ' || w.offer || ', false]';
end $$;

-- From replies.sql
-- Replies as texts. The first letter says which, a JSON array has the rest (codec.ts). No reply has
-- a line break: they are told apart by it.

create or replace function holdfast.holder_json_1(h holdfast.holder, is_exclusive boolean,
  now_us bigint) returns jsonb language sql stable as $$
  select jsonb_build_array(h.expiry - now_us, h.token, h.span,
    case when is_exclusive then 'x' else 's' end, h.weight, h.most, now_us - h.granted, h.meta)
$$;

-- The blockage of the request \`w\`: the holder that expires first, and the time until then. If no
-- holder is in its way, the time until names are granted again.
create or replace function holdfast.blockage_1(
  r holdfast.name, w holdfast.waiter, now_us bigint, grants_from bigint
) returns jsonb language plpgsql as $$
declare
  h holdfast.holder := holdfast.next_1(r);
begin
  if h.owner is null
    or now_us < grants_from and holdfast.fits_1(r, w.exclusive, w.weight, w.most) then
    return jsonb_build_array(greatest(0, grants_from - now_us));
  end if;
  return holdfast.holder_json_1(h, r.owner is not null, now_us);
end $$;

create or replace function holdfast.mark_json_1(r holdfast.name, now_us bigint) returns jsonb
language sql stable as $$
  select case when r.mark_until > now_us then
    jsonb_build_array(r.mark_token, r.mark_until - now_us, r.mark_meta) end
$$;

create or replace function holdfast.renewed_1(remaining bigint, waiting integer, token bigint,
  span integer) returns text language sql stable as $$
  select 'N[' || remaining || case when waiting > 0 then ',true,' else ',false,' end || token ||
    ',' || span || ']'
$$;

-- The reply to a renewal or confirm without a holder: whether it was revoked, and why.
create or replace function holdfast.gone_1(r holdfast.name, ended text, now_us bigint)
returns text language plpgsql as $$
declare
  why text;
begin
  if r.buried > now_us then
    select t.reason into why from holdfast.tombstone t
      where t.namespace = r.namespace and t.key = r.key and t.owner = ended and t.until > now_us;
  end if;
  if why is not null then return 'O' || json_build_array('v', why); end if;
  return case when r.owner is null then 'O["m",""]' else 'O["r",""]' end;
end $$;

-- The state of a name: [holders, waiters, mark].
create or replace function holdfast.view_1(r holdfast.name, now_us bigint) returns jsonb
language plpgsql as $$
declare
  holders jsonb := '[]';
  waiters jsonb := '[]';
begin
  if r.owner is not null and r.expiry > now_us then
    holders := jsonb_build_array(
      holdfast.holder_json_1(holdfast.exclusive_1(r), true, now_us));
  elsif r.shared > 0 then
    select coalesce(jsonb_agg(holdfast.holder_json_1(h, false, now_us) order by h.token), '[]')
      into holders from holdfast.holder h
      where h.namespace = r.namespace and h.key = r.key and h.expiry > now_us;
  end if;
  if r.waiting > 0 then
    select coalesce(jsonb_agg(jsonb_build_array(case when w.exclusive then 'x' else 's' end,
        w.weight, w.most, now_us - w.since, w.meta) order by w.place), '[]')
      into waiters from holdfast.waiter w
      where w.namespace = r.namespace and w.key = r.key;
  end if;
  return jsonb_build_array(holders, waiters, holdfast.mark_json_1(r, now_us));
end $$;

-- From commands.sql
-- The commands. Each changes the row \`r\` of its name, after the upkeep (apply.sql), and replies.

-- Counts on from a token that a client has seen; false where that is beyond reason.
create or replace function holdfast.learn_1(inout r holdfast.name, seen bigint, now_us bigint,
  out is_credible boolean) language plpgsql as $$
begin
  is_credible := seen <= greatest(r.last, least(now_us + 31536000000000, 9007199254739967));
  if is_credible then r.last := greatest(r.last, seen); end if;
end $$;

-- Nothing that is still under way for this owner may act until then. A revocation keeps its reason.
create or replace function holdfast.bury_1(
  inout r holdfast.name, ended text, until bigint, now_us bigint, reason text
) language plpgsql as $$
begin
  r.buried := greatest(r.buried, until);
  insert into holdfast.tombstone as t values (r.namespace, r.key, ended, bury_1.until,
      bury_1.reason)
    on conflict (namespace, key, owner) do update set
      until = case when t.until > now_us then greatest(t.until, excluded.until)
        else excluded.until end,
      reason = coalesce(excluded.reason, case when t.until > now_us then t.reason end);
end $$;

-- words: client, mode, weight, limit, ttl, offer, touch, span, whether it may wait, not after, seen
-- token, meta.
create or replace function holdfast.acquire_1(
  inout r holdfast.name, words text[], asker text, now_us bigint, grants_from bigint,
  out reply text
) language plpgsql as $$
declare
  is_exclusive constant boolean := words[2] = 'x';
  touch constant bigint := words[7];
  h holdfast.holder;
  w holdfast.waiter;
  x record;
begin
  w.client := words[1]; w.weight := words[3]; w.most := words[4]; w.ttl := words[5];
  w.offer := words[6]; w.span := least(words[8]::bigint, 1025); w.meta := words[12];
  w.owner := asker; w.exclusive := is_exclusive;
  if w.ttl > 3153600000000000 or w.weight not between 1 and w.most
    or w.most > 9007199254740991 or w.span not between 1 and 1024 then
    reply := 'U["t"]';
    return;
  end if;
  if now_us > words[10]::bigint then
    reply := 'L';
    return;
  end if;
  if r.buried > now_us and exists (select from holdfast.tombstone t where t.namespace = r.namespace
      and t.key = r.key and t.owner = asker and t.until > now_us) then
    reply := 'E';
    return;
  end if;
  x := holdfast.learn_1(r, words[11]::bigint, now_us);
  r := x.r;
  if not x.is_credible then
    reply := 'U["s"]';
    return;
  end if;
  x := holdfast.holder_of_1(r, asker, now_us);
  r := x.r;
  h := x.h;
  if h.owner is not null then
    r := holdfast.confirm_1(r, h, now_us);
    h.expiry := greatest(h.expiry, case when h.confirmed then 0 else now_us + h.ttl end);
    reply := 'g' || json_build_array(h.token, h.span, h.expiry - now_us);
    return;
  end if;
  if r.mark_until is not null then
    reply := 'M' || holdfast.mark_json_1(r, now_us)::text;
    return;
  end if;
  if r.waiting > 0 and exists (select from holdfast.waiter v where v.namespace = r.namespace
      and v.key = r.key and v.owner = asker) then
    reply := 'Q' || jsonb_build_array(null, holdfast.blockage_1(r, w, now_us, grants_from))::text;
    return;
  end if;
  h.token := greatest(now_us, r.last + 1);
  if h.token > 9007199254739967 then
    reply := 'U["l"]';
    return;
  end if;
  if now_us >= grants_from and holdfast.fits_1(r, is_exclusive, w.weight, w.most)
    and not (r.waiting > 0 and exists (select from holdfast.client c
      where c.namespace = r.namespace and c.key = r.key and not c.suspect)) then
    h.granted := now_us; h.expiry := now_us + w.ttl; h.ttl := w.ttl; h.weight := w.weight;
    h.most := w.most; h.span := w.span; h.confirmed := true; h.owner := asker;
    h.client := w.client; h.meta := w.meta;
    r.last := h.token + h.span - 1;
    r := holdfast.put_holder_1(r, is_exclusive, h);
    reply := 'G' || h.token;
  elsif words[9] <> '1' then
    reply := 'B' || jsonb_build_array(holdfast.blockage_1(r, w, now_us, grants_from))::text;
  elsif w.offer > 3153600000000000 or touch > 788400000000000 then
    reply := 'U["t"]';
  else
    reply := 'Q' || jsonb_build_array(
      r.waiting, holdfast.blockage_1(r, w, now_us, grants_from))::text;
    r := holdfast.enqueue_1(r, w, touch, now_us);
  end if;
end $$;

-- The first word of a waiter about its grant turns the offer window into the full lease, once.
create or replace function holdfast.confirm_1(
  inout r holdfast.name, h holdfast.holder, now_us bigint
) language plpgsql as $$
begin
  if h.confirmed then return; end if;
  perform holdfast.note_1(h.ttl, now_us) where not holdfast.is_noted_1(h.ttl, now_us);
  h.confirmed := true;
  h.expiry := greatest(h.expiry, now_us + h.ttl);
  r := holdfast.update_holder_1(r, h);
end $$;

-- words: ttl, not after, seen token, and the heir where there is one.
create or replace function holdfast.renew_1(
  inout r holdfast.name, words text[], asker text, now_us bigint, out reply text
) language plpgsql as $$
declare
  ttl constant bigint := words[1];
  h holdfast.holder;
  x record;
begin
  if ttl > 3153600000000000 then
    reply := 'U["t"]';
    return;
  end if;
  if now_us > words[2]::bigint then
    reply := 'L';
    return;
  end if;
  x := holdfast.learn_1(r, words[3]::bigint, now_us);
  r := x.r;
  x := holdfast.holder_of_1(r, asker, now_us);
  r := x.r;
  h := x.h;
  if h.owner is null then
    reply := holdfast.gone_1(r, asker, now_us);
    return;
  end if;
  h.confirmed := true;
  h.ttl := ttl;
  h.expiry := greatest(h.expiry, now_us + ttl);
  h.client := coalesce(words[4], h.client);
  r := holdfast.update_holder_1(r, h);
  reply := holdfast.renewed_1(h.expiry - now_us, r.waiting, h.token, h.span);
end $$;

-- words: the end of the tombstone, the length of the mark ('': none), its meta.
create or replace function holdfast.release_1(
  inout r holdfast.name, words text[], asker text, now_us bigint, grants_from bigint,
  inout slice integer, inout behind boolean, out reply text
) language plpgsql as $$
declare
  until constant bigint := least(words[1]::bigint, now_us + 3153600000000000);
  h holdfast.holder;
  w holdfast.waiter;
  next holdfast.holder;
  x record;
begin
  if until > now_us then r := holdfast.bury_1(r, asker, until, now_us, null); end if;
  x := holdfast.holder_of_1(r, asker, now_us);
  r := x.r;
  h := x.h;
  if h.owner is not null then
    r := holdfast.drop_holder_1(r, h);
    if words[2] <> '' then
      r.mark_until := now_us + words[2]::bigint;
      r.mark_token := h.token;
      r.mark_meta := words[3];
    end if;
  elsif r.waiting > 0 then
    select * into w from holdfast.waiter v
      where v.namespace = r.namespace and v.key = r.key and v.owner = asker;
    if found then r := holdfast.drop_waiter_1(r, w); end if;
  end if;
  if h.owner is not null or w.owner is not null then
    x := holdfast.serve_1(r, now_us, grants_from, slice, behind);
    r := x.r; slice := x.slice; behind := x.behind;
  end if;
  next := holdfast.next_1(r);
  reply := 'R' || json_build_array(h.owner is not null,
    case when next.owner is null or next.confirmed then 0
      else greatest(0, next.expiry - now_us) end,
    behind and r.waiting > 0);
end $$;

create or replace function holdfast.touch_1(
  r holdfast.name, toucher text, now_us bigint, grants_from bigint, slice_size integer,
  behind boolean
) returns text language plpgsql as $$
declare
  offered integer := 0;
  grants jsonb := '[]';
  waiting integer := 0;
  w holdfast.waiter;
begin
  if r.owner is not null then
    if r.client = toucher and not r.confirmed then
      offered := 1;
      if r.expiry > now_us then
        grants := jsonb_build_array(
          jsonb_build_array(r.owner, r.token, r.span, r.granted, r.expiry));
      end if;
    end if;
  elsif r.shared > 0 then
    select count(*), coalesce(jsonb_agg(jsonb_build_array(o.owner, o.token, o.span, o.granted,
        o.expiry) order by o.token) filter (where o.nth <= slice_size and o.expiry > now_us), '[]')
      into offered, grants
      from (select h.*, row_number() over (order by h.token) as nth from holdfast.holder h
        where h.namespace = r.namespace and h.key = r.key and h.client = toucher
          and not h.confirmed order by h.token limit slice_size + 1) o;
  end if;
  if r.waiting > 0 then
    select c.waiting into waiting from holdfast.client c
      where c.namespace = r.namespace and c.key = r.key and c.id = toucher;
    if now_us < grants_from then w := holdfast.head_1(r.namespace, r.key); end if;
  end if;
  return 'T' || jsonb_build_array(coalesce(waiting, 0),
    offered > jsonb_array_length(grants) or behind and r.waiting > 0, grants,
    holdfast.blockage_1(r, w, now_us, grants_from))::text;
end $$;

create or replace function holdfast.revoke_1(
  inout r holdfast.name, reason text, revoked bigint, now_us bigint, grants_from bigint,
  inout slice integer, inout behind boolean, out reply text
) language plpgsql as $$
declare
  h holdfast.holder;
  x record;
begin
  if r.mark_until is not null and r.mark_token = revoked then
    r.mark_until := null;
    reply := 'V[true]';
    return;
  end if;
  if r.owner is not null then
    h := holdfast.exclusive_1(r);
  elsif r.shared > 0 then
    select * into h from holdfast.holder o
      where o.namespace = r.namespace and o.key = r.key and o.token <= revoked
      order by o.token desc limit 1;
  end if;
  if h.owner is null or revoked not between h.token and h.token + h.span - 1
    or h.expiry <= now_us then
    reply := 'V[false]';
    return;
  end if;
  r := holdfast.drop_holder_1(r, h);
  r := holdfast.bury_1(r, h.owner, h.expiry, now_us, reason);
  perform holdfast.push_1(h.client,
    json_build_array('v', r.key, h.owner, h.token, reason)::text);
  x := holdfast.serve_1(r, now_us, grants_from, slice, behind);
  r := x.r; slice := x.slice; behind := x.behind;
  reply := 'V[true]';
end $$;

-- From apply.sql
-- The ledger (rules/ledger.ts): what a command does to the state of one name at one instant. The
-- batch has locked the row of the name. The short paths in execute.sql do the same for names that
-- have at most one exclusive holder.

-- One command. \`words\` are the terms of its run (execute.sql), \`subject\` its owner, client or
-- token.
-- \`slice_size\` is the slice of a whole batch, \`slice\` what is left of it.
create or replace function holdfast.apply_1(
  space text, name_key text, op text, words text[], subject text, now_us bigint,
  grants_from bigint, slice_size integer, inout slice integer, out reply text
) language plpgsql as $$
declare
  r holdfast.name;
  before holdfast.name;
  h holdfast.holder;
  behind boolean := false;
  is_found boolean;
  new_gone bigint;
  x record;
  speaker constant text := case op when 'a' then words[1] when 't' then subject end;
begin
  select * into before from holdfast.name n where n.namespace = space and n.key = name_key;
  is_found := found;
  r := before;
  if not is_found then
    r.namespace := space; r.key := name_key; r.last := 0; r.shared := 0; r.shared_weight := 0;
    r.waiting := 0; r.place := 0; r.silent := 0; r.buried := 0;
    before := r;
  end if;
  if r.owner is not null and r.expiry <= now_us or r.shared > 0 or r.buried > 0
    or r.mark_until <= now_us or r.waiting > 0 and r.silent <= now_us then
    x := holdfast.expire_1(r, now_us, slice);
    r := x.r; slice := x.slice; behind := x.behind;
  end if;
  if r.waiting > 0 then
    if speaker is not null then
      update holdfast.client c set
        suspect = false, gone = now_us + 3 * c.touch, connection = holdfast.connection_1()
        where c.namespace = space and c.key = name_key and c.id = speaker
        returning c.gone into new_gone;
      r.silent := least(r.silent, new_gone);
    end if;
    x := holdfast.serve_1(r, now_us, grants_from, slice, behind);
    r := x.r; slice := x.slice; behind := x.behind;
  end if;
  case op
    when 'a' then
      x := holdfast.acquire_1(r, words, subject, now_us, grants_from);
      r := x.r; reply := x.reply;
    when 'c' then
      x := holdfast.holder_of_1(r, subject, now_us);
      r := x.r;
      h := x.h;
      if h.owner is null then
        reply := holdfast.gone_1(r, subject, now_us);
      else
        r := holdfast.confirm_1(r, h, now_us);
        if not h.confirmed then h.expiry := greatest(h.expiry, now_us + h.ttl); end if;
        reply := holdfast.renewed_1(h.expiry - now_us, r.waiting, h.token, h.span);
      end if;
    when 'n', 'm' then
      x := holdfast.renew_1(r, words, subject, now_us);
      r := x.r; reply := x.reply;
    when 'r' then
      x := holdfast.release_1(r, words, subject, now_us, grants_from, slice, behind);
      r := x.r; slice := x.slice; reply := x.reply;
    when 't' then
      reply := holdfast.touch_1(r, subject, now_us, grants_from, slice_size, behind);
    when 'i' then
      reply := 'I' || holdfast.view_1(r, now_us)::text;
    when 'v' then
      x := holdfast.revoke_1(
        r, words[1], subject::bigint, now_us, grants_from, slice, behind);
      r := x.r; slice := x.slice; reply := x.reply;
  end case;
  if r is not distinct from before then return; end if;
  if not is_found then
    raise 'the batch changes a name that has no row' using errcode = 'serialization_failure';
  end if;
  update holdfast.name n set
    last = r.last, shared = r.shared, shared_weight = r.shared_weight, waiting = r.waiting,
    place = r.place, silent = r.silent, buried = r.buried, token = r.token, granted = r.granted,
    expiry = r.expiry, ttl = r.ttl, weight = r.weight, most = r.most, span = r.span,
    confirmed = r.confirmed, owner = r.owner, client = r.client, meta = r.meta,
    mark_until = r.mark_until, mark_token = r.mark_token, mark_meta = r.mark_meta
    where n.namespace = space and n.key = name_key;
end $$;

-- From batch.sql
-- Batches. Missing rows are made in the order of their keys before any row is locked, and rows are
-- locked in that order, so two batches never wait for each other in a cycle. The clock is read
-- after all rows are locked. A row that was removed between the two steps fails the batch with
-- 40001: nothing of it was applied.

-- Makes the rows of the names that have none, from the floor of the namespace. The floor is read
-- by a statement after the insert: it then has the tokens of rows that were removed before. In
-- other isolation levels that statement would not see them.
create or replace function holdfast.make_rows_1(space text, keys text[]) returns void
language plpgsql as $$
declare
  missing text[];
  start bigint;
begin
  missing := array(
    select distinct k collate "C" from unnest(keys) k
      where not exists (select from holdfast.name o where o.namespace = space and o.key = k)
      order by 1);
  if missing = '{}' then return; end if;
  if current_setting('transaction_isolation') <> 'read committed' then
    raise 'holdfast needs the isolation level "read committed"'
      using errcode = 'LF002', hint = 'Set default_transaction_isolation for this connection.';
  end if;
  insert into holdfast.name (namespace, key) select space, k from unnest(missing) k
    on conflict do nothing;
  select s.floor into start from holdfast.namespace s where s.name = space;
  if start > 0 then
    update holdfast.name o set last = start
      where o.namespace = space and o.key = any (missing) and o.last < start;
  end if;
end $$;

-- The short paths for a run: changes all names that have nothing but an exclusive holder in one
-- UPDATE, in the order of their keys. Where another kind of name is in the run, its reply is null.
-- The rows are found one by one: as a join of two tables, a plan could read the whole namespace.
create or replace function holdfast.lone_run_1(space text, op text, terms text[], keys text[],
  subjects text[], now_us bigint) returns text[] language plpgsql as $$
declare
  replies text[] := array_fill(null::text, array[cardinality(keys)]);
  x record;
begin
  if op = 'a' then
    if terms[2] <> 'x' or not holdfast.is_noted_1(terms[5]::bigint, now_us)
      or not holdfast.is_fair_1(
        terms[5]::bigint, terms[3]::bigint, terms[4]::bigint, terms[8]::bigint) then
      return replies;
    end if;
    for x in
      update holdfast.name o set
        last = holdfast.token_1(o.last, terms[11]::bigint, now_us) + terms[8]::bigint - 1,
        token = holdfast.token_1(o.last, terms[11]::bigint, now_us),
        granted = now_us, expiry = now_us + terms[5]::bigint, ttl = terms[5]::bigint,
        weight = terms[3]::bigint, most = terms[4]::bigint, span = terms[8]::bigint,
        confirmed = true, owner = u.subject, client = terms[1], meta = terms[12]
      from (select v.subject, v.nth, (select p.ctid from holdfast.name p
            where p.namespace = space and p.key = v.key) as row_id
          from unnest(keys, subjects) with ordinality as v (key, subject, nth)
          order by v.key collate "C") u
      where o.ctid = u.row_id and holdfast.is_lone_1(o)
        and (o.owner is null or o.expiry <= now_us)
        and holdfast.may_count_on_1(o.last, terms[11]::bigint, now_us)
        and terms[10]::bigint >= holdfast.clock_1()
      returning u.nth, o.token
    loop
      replies[x.nth] := 'G' || x.token;
    end loop;
  elsif op = 'r' and terms[1] = '0' and terms[2] = '' then
    for x in
      update holdfast.name o set owner = null, client = null, meta = null
      from (select v.subject, v.nth, (select p.ctid from holdfast.name p
            where p.namespace = space and p.key = v.key) as row_id
          from unnest(keys, subjects) with ordinality as v (key, subject, nth)
          order by v.key collate "C") u
      where o.ctid = u.row_id and holdfast.is_lone_1(o)
        and o.owner = u.subject and o.expiry > now_us
      returning u.nth
    loop
      replies[x.nth] := 'R';
    end loop;
  elsif op = 'n' and terms[1]::bigint <= 3153600000000000
    and holdfast.is_noted_1(terms[1]::bigint, now_us) then
    for x in
      update holdfast.name o set
        last = holdfast.learned_1(o.last, terms[3]::bigint, now_us),
        expiry = greatest(o.expiry, now_us + terms[1]::bigint), ttl = terms[1]::bigint,
        confirmed = true
      from (select v.subject, v.nth, (select p.ctid from holdfast.name p
            where p.namespace = space and p.key = v.key) as row_id
          from unnest(keys, subjects) with ordinality as v (key, subject, nth)
          order by v.key collate "C") u
      where o.ctid = u.row_id and holdfast.is_quiet_1(o, now_us)
        and o.owner = u.subject and o.expiry > now_us and terms[2]::bigint >= holdfast.clock_1()
      returning u.nth, holdfast.renewed_1(o.expiry - now_us, o.waiting, o.token, o.span) as reply
    loop
      replies[x.nth] := x.reply;
    end loop;
  end if;
  return replies;
end $$;

create or replace function holdfast.terms_1(op text) returns integer
language sql immutable as $$
  select case op when 'a' then 12 when 'n' then 3 when 'm' then 4 when 'r' then 3 when 'v' then 1
    else 0 end
$$;

-- Locks the rows of the names. Returns the keys, with null for those that have no row: a row that
-- is made after this is not locked, so to this batch its name has none. A row lock is written to
-- the log. So a commit that only tells a grant again waits for the disk and for standbys, and with
-- it the commit of that grant, which may have given up waiting.
create or replace function holdfast.lock_rows_1(space text, keys text[], makes_rows boolean)
returns text[] language plpgsql as $$
declare
  locked text[];
begin
  -- One name can be locked before it is known to have a row: nothing else is locked then.
  if makes_rows and cardinality(keys) > 1 then perform holdfast.make_rows_1(space, keys); end if;
  for attempt in 1 .. 2 loop
    select array_agg(l.key) into locked from (
      select o.key from holdfast.name o where o.namespace = space and o.key = any (keys)
        order by o.key for update) l;
    if cardinality(locked) = cardinality(keys) then return keys; end if;
    exit when not makes_rows or cardinality(keys) > 1;
    perform holdfast.make_rows_1(space, keys);
  end loop;
  keys := array(select case when v.key = any (locked) then v.key end
    from unnest(keys) with ordinality as v (key, nth) order by v.nth);
  if makes_rows and array_position(keys, null) is not null then
    raise 'a name was removed meanwhile' using errcode = 'serialization_failure';
  end if;
  return keys;
end $$;

-- Applies a command of a batch in which damaged rows failed a command: only that command fails.
create or replace function holdfast.apply_alone_1(
  space text, name_key text, op text, words text[], subject text, now_us bigint,
  grants_from bigint, slice_size integer, inout slice integer, out reply text
) language plpgsql as $$
declare
  x record;
begin
  x := holdfast.apply_1(
    space, name_key, op, words, subject, now_us, grants_from, slice_size, slice);
  slice := x.slice;
  reply := x.reply;
exception when data_exception or integrity_constraint_violation then
  reply := '!' || to_json(sqlerrm);
end $$;

-- The commands of a batch whose rows are locked, in runs from the word \`head\` on. The keys are null
-- for names without a row.
create or replace function holdfast.runs_1(space text, words text[], head integer, keys text[],
  now_us bigint, is_careful boolean) returns text language plpgsql as $$
declare
  slice_size constant integer := 64;
  slice integer := slice_size;
  flags constant text := words[1];
  n constant integer := words[2];
  done integer := 0;
  op text;
  size integer;
  grants_from bigint := 0;
  ttl bigint;
  terms text[];
  replies text[] := '{}';
  run_keys text[];
  run_replies text[];
  x record;
begin
  while done < n loop
    op := words[head];
    size := words[head + 1];
    terms := words[head + 2 : head + 1 + holdfast.terms_1(op)];
    head := head + 2 + holdfast.terms_1(op);
    run_keys := keys[done + 1 : done + size];
    ttl := case op when 'a' then terms[5]::bigint when 'n' then terms[1]::bigint
      when 'm' then terms[1]::bigint else 0 end;
    if not holdfast.is_noted_1(ttl, now_us) then
      grants_from := holdfast.note_1(ttl, now_us);
    end if;
    if flags like '%s' then grants_from := 0; end if;
    run_replies := case when n > 1 then holdfast.lone_run_1(
      space, op, terms, run_keys, words[head : head + size - 1], now_us) end;
    for nth in 1 .. size loop
      if run_replies[nth] is null then
        if is_careful then
          x := holdfast.apply_alone_1(space, run_keys[nth], op, terms, words[head + nth - 1],
            now_us, grants_from, slice_size, slice);
        else
          x := holdfast.apply_1(space, run_keys[nth], op, terms, words[head + nth - 1],
            now_us, grants_from, slice_size, slice);
        end if;
        slice := x.slice;
        run_replies[nth] := x.reply;
      end if;
    end loop;
    replies := replies || run_replies;
    head := head + size;
    done := done + size;
  end loop;
  return now_us || holdfast.run_1() || array_to_string(replies, chr(10));
end $$;

create or replace function holdfast.batch_1(space text, words text[]) returns text
language plpgsql as $$
declare
  n constant integer := words[2];
  head constant integer := n + 3;
  op constant text := words[head];
  subjects constant integer := head + 2 + holdfast.terms_1(op);
  keys text[] := words[3 : n + 2];
  replies text[];
  is_late boolean;
  now_us bigint;
begin
  -- Most batches are one run of names that have nothing but an exclusive holder. Otherwise the
  -- changes of this block are undone with their locks, so that all rows can be locked in order.
  if n > 1 and words[head + 1] = words[2] and op in ('a', 'n', 'r') then
    begin
      now_us := holdfast.clock_1();
      replies := holdfast.lone_run_1(space, op, words[head + 2 : subjects - 1], keys,
        words[subjects : subjects + n - 1], now_us);
      -- The limit "not after", which lone_run_1 has judged before it waited for the last row.
      is_late := holdfast.clock_1()
        > words[head + case op when 'a' then 11 when 'n' then 3 end]::bigint;
      if array_position(replies, null) is null and is_late is not true then
        return now_us || holdfast.run_1() || array_to_string(replies, chr(10));
      end if;
      raise 'not only such names' using errcode = 'LF000';
    exception when sqlstate 'LF000' then
    end;
  end if;

  keys := holdfast.lock_rows_1(space, keys, words[1] like '+%');
  now_us := holdfast.clock_1();
  begin
    return holdfast.runs_1(space, words, head, keys, now_us, false);
  exception when data_exception or integrity_constraint_violation then
    return holdfast.runs_1(space, words, head, keys, now_us, true);
  end;
end $$;

-- From execute.sql
-- The entry: runs the commands of a batch in order, at one instant, in one statement.
--
-- words: flags, the number n of commands, the n keys, and then the commands in runs. A run has one
--   operation and one set of terms: operation, number of commands, terms, and for each command its
--   subject (owner, client or token). No key is twice in a run.
--     a  acquire  client, mode (x or s), weight, limit, ttl, offer, touch, span, whether it may
--                 wait (1 or 0), not after, seen token, meta; owner
--     c  confirm  owner
--     n  renew    ttl, not after, seen token; owner
--     m  renew    the same and the heir; owner
--     r  release  end of the tombstone, length of the mark (empty: none), meta of the mark; owner
--     t  touch    client
--     i  inspect  (empty)
--     v  revoke   reason; token
--   flags: + makes the rows of names that have none; acquire, renew, and a release with a tombstone
--   need it. s says that no acknowledged commit is lost in a failover (synchronous replication).
-- returns: the time, a space, the run of the server; then a line for each reply.
--
-- One command on a name that has nothing but an exclusive holder is one UPDATE. Its time is read
-- before the row is locked. Where the UPDATE waits for another batch, it judges the new row, and
-- counts as having run at its earlier time: a lease only gets shorter by that. The limit "not
-- after" is the exception, because its sender may have given up meanwhile: it is judged by the
-- clock after the wait. The UPDATE judges a row again only if the other transaction changed it, so
-- the limit is judged once more at the end. All else goes through batch_1.
create or replace function holdfast.execute_1(space text, words text[]) returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '5s'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
  now_us constant bigint := holdfast.clock_1();
  op constant text := case words[2] when '1' then words[4] else '' end;
  -- The terms as numbers: a cast inside a statement is prepared anew in each call.
  new_ttl bigint;
  new_weight bigint;
  new_most bigint;
  new_span bigint;
  not_after bigint;
  seen bigint;
  granted_token bigint;
  waiters integer;
  durability text;
  reply text;
begin
  -- A warning is the only sign that the server gave up waiting for a synchronous standby. It comes
  -- with the commit, so this is set for the transaction and not for the function.
  if current_setting('client_min_messages') = 'error' then
    perform set_config('client_min_messages', 'warning', true);
  end if;
  if op = 'a' then
    new_ttl := words[10];
    if words[7] = 'x' and holdfast.is_noted_1(new_ttl, now_us) then
      new_weight := words[8]; new_most := words[9]; new_span := words[13];
      not_after := words[15]; seen := words[16];
      update holdfast.name o set
        last = holdfast.token_1(o.last, seen, now_us) + new_span - 1,
        token = holdfast.token_1(o.last, seen, now_us),
        granted = now_us, expiry = now_us + new_ttl, ttl = new_ttl,
        weight = new_weight, most = new_most, span = new_span,
        confirmed = true, owner = words[18], client = words[6], meta = words[17]
      where o.namespace = space and o.key = words[3] and holdfast.is_lone_1(o)
        and (o.owner is null or o.expiry <= now_us)
        and holdfast.is_fair_1(new_ttl, new_weight, new_most, new_span)
        and holdfast.may_count_on_1(o.last, seen, now_us)
        and not_after >= holdfast.clock_1()
      returning o.token into granted_token;
      if found then reply := 'G' || granted_token; end if;
    end if;
  elsif op = 'r' and words[6] = '0' and words[7] = '' then
    -- With waiters, this only locks the row.
    update holdfast.name o set
      owner = case when o.waiting > 0 then o.owner end,
      client = case when o.waiting > 0 then o.client end,
      meta = case when o.waiting > 0 then o.meta end
    where o.namespace = space and o.key = words[3] and holdfast.is_quiet_1(o, now_us)
      and o.owner = words[9] and o.expiry > now_us
    returning o.waiting into waiters;
    if waiters = 0 then
      durability := holdfast.forgo_disk_1();
      reply := 'R';
    elsif waiters > 0 then
      reply := holdfast.hand_off_1(space, words[3], waiters);
      if reply is not null then return reply; end if;
    end if;
  elsif op = 'n' then
    new_ttl := words[6];
    if holdfast.is_noted_1(new_ttl, now_us) then
      not_after := words[7]; seen := words[8];
      update holdfast.name o set
        last = holdfast.learned_1(o.last, seen, now_us),
        expiry = greatest(o.expiry, now_us + new_ttl), ttl = new_ttl,
        confirmed = true
      where o.namespace = space and o.key = words[3] and holdfast.is_quiet_1(o, now_us)
        and o.owner = words[9] and o.expiry > now_us
        and new_ttl <= 3153600000000000 and not_after >= holdfast.clock_1()
      returning holdfast.renewed_1(o.expiry - now_us, o.waiting, o.token, o.span) into reply;
    end if;
  elsif op = 'c' then
    update holdfast.name o set
      expiry = case when o.confirmed then o.expiry else greatest(o.expiry, now_us + o.ttl) end,
      confirmed = true
    where o.namespace = space and o.key = words[3] and holdfast.is_quiet_1(o, now_us)
      and o.owner = words[6] and o.expiry > now_us and holdfast.is_noted_1(o.ttl, now_us)
    returning holdfast.renewed_1(o.expiry - now_us, o.waiting, o.token, o.span) into reply;
  end if;
  if reply is null then return holdfast.batch_1(space, words); end if;
  if not_after < holdfast.clock_1() then
    raise 'the command waited for too long' using errcode = 'serialization_failure';
  end if;
  return now_us || holdfast.run_1() || reply;
end $$;

-- From list.sql
-- The names in use whose key begins with \`prefix\`, after the key \`after\`, in the order of their
-- bytes. It looks at no more than \`most\` rows, and locks none.
--
-- returns: the time; a line with the JSON of the key to go on after, or null at the end; then a
-- line [key, view] for each name.
create or replace function holdfast.list_1(space text, prefix text, after text, most integer)
returns text language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  now_us constant bigint := (date_part('epoch', clock_timestamp()) * 1000000)::bigint;
  r holdfast.name;
  view jsonb;
  looked integer := 0;
  lines text[] := '{}';
  following text;
begin
  for r in select * from holdfast.name o
    where o.namespace = space and o.key >= prefix and o.key > after order by o.key
  loop
    exit when not starts_with(r.key, prefix);
    if looked = most then exit; end if;
    looked := looked + 1;
    following := r.key;
    if r.owner is null and r.shared = 0 and r.waiting = 0 and r.mark_until is null then
      continue;
    end if;
    view := holdfast.view_1(r, now_us);
    if view <> '[[], [], null]' then
      lines := lines || jsonb_build_array(r.key, view)::text;
    end if;
  end loop;
  if looked < most then following := null; end if;
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
create or replace function holdfast.sweep_names_1(
  inout namespace text, inout key text, size integer, age_us bigint
) language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off as $$
declare
  now_us bigint := extract(epoch from clock_timestamp()) * 1000000;
  edge record;
  idle tid[];
begin
  select n.namespace, n.key into edge from holdfast.name n
    where (n.namespace, n.key) > (sweep_names_1.namespace, sweep_names_1.key)
    order by n.namespace, n.key offset size - 1 limit 1;
  select array_agg(locked.ctid) into idle from (
    select n.ctid from holdfast.name n
      where (n.namespace, n.key) > (sweep_names_1.namespace, sweep_names_1.key)
        and (edge is null or (n.namespace, n.key) <= (edge.namespace, edge.key))
        and n.last not between now_us - age_us and now_us
        and (n.owner is null or n.expiry <= now_us)
        and (n.mark_until is null or n.mark_until <= now_us)
        and n.buried <= now_us
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
        returning n.namespace, n.key, n.shared, n.waiting, n.buried
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
      where gone.buried > 0 and t.namespace = gone.namespace and t.key = gone.key;
  end if;
  namespace := edge.namespace;
  key := edge.key;
end $$;

-- The same for rows of fences: fence.sql says why no stale token passes afterwards, and which
-- tokens may raise the floor.
create or replace function holdfast.sweep_fences_1(
  inout namespace text, inout name text, size integer, age interval
) language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off as $$
declare
  oldest constant timestamptz := clock_timestamp() - age;
  edge record;
  idle tid[];
begin
  select f.namespace, f.name into edge from holdfast.fence_token f
    where (f.namespace, f.name) > (sweep_fences_1.namespace, sweep_fences_1.name)
    order by f.namespace, f.name offset size - 1 limit 1;
  select array_agg(locked.ctid) into idle from (
    select f.ctid from holdfast.fence_token f
      where (f.namespace, f.name) > (sweep_fences_1.namespace, sweep_fences_1.name)
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
create or replace function holdfast.sweep_1(size integer) returns boolean
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
      from holdfast.sweep_fences_1(s.namespace, s.key, size, holdfast.fence_age());
  else
    select * into s.namespace, s.key
      from holdfast.sweep_names_1(s.namespace, s.key, size, 600000000::bigint);
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
  values (1, holdfast.system_1(), holdfast.timeline_1()) on conflict do nothing;
-- Not part of the insert: that would lock a row which batches may wait for.
update holdfast.server set version = 1 where version < 1;
`;
