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

-- The pause between two rounds through all rows.
create or replace function holdfast.sweep_pause_3() returns interval
language sql immutable as $$ select interval '10 minutes' $$;

-- A name stays for at least this long after its last grant.
create or replace function holdfast.min_idle_us_3() returns bigint language sql immutable as $$
  select 600000000::bigint
$$;

-- Removes names that were not granted for `age_us`, among the next `size` in the order of their
-- keys. Returns the last key that was looked at; null after the last row. A name goes when nothing
-- of it is alive: no holder, no waiter, no mark and no tombstone; what is dead goes with it.
-- A batch that waits for such a row finds it gone, and is sent again (40001). A batch that inserts
-- the row reads the floor afterwards. Tokens ahead of the clock say nothing about the time.
--
-- A damaged row stays. Its token would become the floor, from which all names of the namespace
-- count on. So the floor rises no further than any client can raise a token: a year ahead of the
-- clock.
create or replace function holdfast.sweep_names_3(
  inout namespace text, inout key text, size integer, age_us bigint
) language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off as $$
declare
  now_us bigint := extract(epoch from clock_timestamp()) * 1000000;
  edge record;
  idle tid[];
begin
  select n.namespace, n.key into edge from holdfast.name n
    where (n.namespace, n.key) > (sweep_names_3.namespace, sweep_names_3.key)
    order by n.namespace, n.key offset size - 1 limit 1;
  select array_agg(locked.ctid) into idle from (
    select n.ctid from holdfast.name n
      where (n.namespace, n.key) > (sweep_names_3.namespace, sweep_names_3.key)
        and (edge is null or (n.namespace, n.key) <= (edge.namespace, edge.key))
        and n.last not between now_us - age_us and now_us
        and holdfast.is_row_sound_3(n) and holdfast.is_credible_3(n.last, 0, now_us)
        and ((n.lease).owner is null or (n.lease).expiry <= now_us)
        and (n.mark_until is null or n.mark_until <= now_us)
        and n.last_tombstone <= now_us
      for update skip locked
  ) locked;
  -- A later statement, because it sees all that happened before the rows were locked.
  select array_agg(n.ctid) into idle from holdfast.name n
    where n.ctid = any (idle)
      and (n.shared = 0 or not exists (select from holdfast.holder h
        where h.namespace = n.namespace and h.key = n.key
          and (h.expiry > now_us or not holdfast.is_lease_sound_3(holdfast.as_lease_3(h)))))
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
create or replace function holdfast.sweep_fences_3(
  inout namespace text, inout name text, size integer, age interval
) language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off as $$
declare
  oldest constant timestamptz := clock_timestamp() - age;
  edge record;
  idle tid[];
begin
  select f.namespace, f.name into edge from holdfast.fence_token f
    where (f.namespace, f.name) > (sweep_fences_3.namespace, sweep_fences_3.name)
    order by f.namespace, f.name offset size - 1 limit 1;
  select array_agg(locked.ctid) into idle from (
    select f.ctid from holdfast.fence_token f
      where (f.namespace, f.name) > (sweep_fences_3.namespace, sweep_fences_3.name)
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

-- Does one slice of at most `size` rows, if one is due and no other client is at it. Returns
-- whether the next slice is due at once.
create or replace function holdfast.sweep_3(size integer) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  s holdfast.sweep;
begin
  -- An older snapshot would not see all holders and waiters of the rows that it locks.
  if current_setting('transaction_isolation') <> 'read committed' then return false; end if;
  -- A time beyond the pause comes from a clock that was set back since then.
  select * into s from holdfast.sweep
    where due not between clock_timestamp() and clock_timestamp() + holdfast.sweep_pause_3()
    for update skip locked;
  if not found then return false; end if;
  s.due := '-infinity';
  if s.is_at_fences then
    select * into s.namespace, s.key
      from holdfast.sweep_fences_3(s.namespace, s.key, size, holdfast.fence_age());
  else
    select * into s.namespace, s.key
      from holdfast.sweep_names_3(s.namespace, s.key, size, holdfast.min_idle_us_3());
  end if;
  if s.key is null then
    if s.is_at_fences then s.due := clock_timestamp() + holdfast.sweep_pause_3(); end if;
    s.is_at_fences := not s.is_at_fences;
    s.namespace := '';
    s.key := '';
  end if;
  update holdfast.sweep
    set due = s.due, is_at_fences = s.is_at_fences, namespace = s.namespace, key = s.key;
  return s.due <= clock_timestamp();
end $$;
