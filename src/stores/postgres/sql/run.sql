-- The run of the server. Commits may be lost by a crash with relaxed durability
-- (synchronous_commit or fsync off), and by the promotion of a standby. A lost commit may be a
-- grant or a renewal: the row shows the name as free, and its holder believes in its lease for up
-- to the longest ttl. So then no name is granted until now + the longest ttl. Holders that the rows
-- show go on: a renewal gives nothing that another client was not refused.
--
-- How it is noticed: holdfast.marker is unlogged, so a crash and a promotion empty it. A crash ends
-- all sessions, and no session of a standby has run a batch. So each session reads the marker
-- until it has seen one with which names are granted, and keeps that in two settings of its own.
-- The batch that finds the marker empty makes it anew before any grant.
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

-- Makes the marker of a new run. Commits were possibly lost if this is another server or timeline,
-- or if durability was ever relaxed. Otherwise a crash has lost nothing by itself, but it may have
-- come while names were not granted yet: the logged row keeps until when. Of that time no more than
-- the longest ttl is left, also where the clock went back.
create or replace function holdfast.start_run_1(now_us bigint) returns void
language plpgsql as $$
declare
  s holdfast.server;
  this_system constant text := holdfast.system_1();
  this_timeline constant text := holdfast.timeline_1();
  is_same boolean;
  start bigint;
begin
  select * into s from holdfast.server for update;
  if not found then
    raise 'holdfast.server has no row: run "holdfast migrate"' using errcode = 'LF003';
  end if;
  is_same := s.system = this_system and s.timeline = this_timeline;
  start := now_us + s.longest;
  if is_same and not s.relaxed then start := least(start, s.grants_from); end if;
  -- A restored dump has the marker of another server.
  delete from holdfast.marker m
    where m.system <> this_system or m.timeline <> this_timeline;
  insert into holdfast.marker values (
    true, this_system, this_timeline, start, s.relaxed, s.longest
  ) on conflict do nothing;
  if not found then return; end if;
  update holdfast.server o
    set system = this_system, timeline = this_timeline, grants_from = start
    where not is_same or o.grants_from <> start;
end $$;

-- Reads the marker. Keeps that durability is relaxed, or a longer ttl, before a grant that needs
-- it; that commit waits for the disk even where synchronous_commit is off, so no such grant
-- outlives the change in a crash. Returns the time from which names are granted.
create or replace function holdfast.note_1(ttl bigint, now_us bigint) returns bigint
language plpgsql as $$
declare
  m holdfast.marker;
  counted constant bigint := case when ttl <= 3153600000000000
    then least(ttl, 86400000000) else 0 end;
  is_relaxed constant boolean := holdfast.is_relaxed_1();
begin
  select * into m from holdfast.marker o
    where o.system = holdfast.system_1() and o.timeline = holdfast.timeline_1();
  if not found then
    perform holdfast.start_run_1(now_us);
    select * into m from holdfast.marker;
  end if;
  if m.relaxed < is_relaxed or m.longest < counted then
    update holdfast.server s set
      relaxed = s.relaxed or is_relaxed, longest = greatest(s.longest, counted)
      returning s.relaxed, s.longest into m.relaxed, m.longest;
    update holdfast.marker o set relaxed = m.relaxed, longest = m.longest;
    perform set_config('synchronous_commit', 'on', true)
      where current_setting('synchronous_commit') = 'off';
  end if;
  if m.grants_from <= now_us then
    perform set_config('holdfast.longest', m.longest::text, false),
      set_config('holdfast.relaxed', m.relaxed::text, false);
  end if;
  return m.grants_from;
end $$;

-- Lets this transaction commit without waiting for the disk, for releases that hand nothing off. A
-- crash loses only the end of the log. Every grant waits for the disk, and with it for all commits
-- before it. So a release that is lost had no grant of its name after it: the row shows a holder
-- that has left, until its lease ends, and no other client believes that it holds the name.
create or replace function holdfast.forgo_disk_1() returns text language sql volatile as $$
  select set_config('synchronous_commit', 'off', true)
$$;
