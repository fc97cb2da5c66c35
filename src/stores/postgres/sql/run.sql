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
create or replace function holdfast.timeline_3() returns text
language sql volatile set search_path = pg_catalog, pg_temp as $$
  select left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)
$$;

create or replace function holdfast.system_3() returns text
language sql volatile set search_path = pg_catalog, pg_temp as $$
  select system_identifier::text from pg_control_system()
$$;

-- Makes the marker of a new run. Commits were possibly lost if this is another server or timeline,
-- or if durability was relaxed. Otherwise a crash has lost nothing by itself, but it may have come
-- while names were not granted yet: the logged row keeps until when.
create or replace function holdfast.start_run_3(now_us bigint) returns void
language plpgsql as $$
declare
  s holdfast.server;
  this_system constant text := holdfast.system_3();
  this_timeline constant text := holdfast.timeline_3();
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
create or replace function holdfast.note_3(ttl bigint, now_us bigint) returns bigint
language plpgsql as $$
declare
  m holdfast.marker;
  counted constant bigint := case when ttl <= holdfast.max_lease_us_3()
    then least(ttl, holdfast.max_noted_ttl_us_3()) else 0 end;
  is_relaxed constant boolean := holdfast.is_relaxed_3();
  this_week constant integer := holdfast.week_3(now_us);
begin
  select * into m from holdfast.marker o
    where o.system = holdfast.system_3() and o.timeline = holdfast.timeline_3();
  if not found then
    perform holdfast.start_run_3(now_us);
    select * into m from holdfast.marker;
  end if;
  if m.grants_from > 0 then m.grants_from := holdfast.grants_from_3(m.grants_from, now_us); end if;
  if m.week <> this_week or m.longest < counted or m.relaxed < is_relaxed then
    update holdfast.server s set
      week = this_week,
      -- A clock that was set back forgets nothing.
      longest = greatest(holdfast.min_noted_ttl_us_3(), counted, case
        when s.week >= this_week then s.longest
        else (select max(least(w.ttl, holdfast.max_noted_ttl_us_3())) from holdfast.waiter w) end),
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
create or replace function holdfast.grants_from_3(noted bigint, now_us bigint) returns bigint
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
create or replace function holdfast.forgo_disk_3() returns text language sql volatile as $$
  select set_config('synchronous_commit', 'off', true)
$$;
