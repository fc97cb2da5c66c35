-- The entry: runs the commands of a batch in order, at one instant, in one statement.
--
-- commands: each for as many of the next `names` as it says, with a subject for each: the owner of
--   an acquire, confirm, renew or release; the client of a heartbeat; the token of a revoke. No
--   name is twice in one command.
-- is_synchronous: no acknowledged commit is lost in a failover (synchronous replication).
-- returns: the time, a space, the run of the server; then a line for each reply (replies.sql).
--
-- Most commands are about a name that has nothing but an exclusive holder: one UPDATE does them,
-- for one name or for all names of a command. All other commands go through apply_3. Both follow
-- the same rules (rules.sql). A damaged row fails the commands about its own name only: with an
-- error where the batch has no others, otherwise with a reply.

-- The place in the command, the subject and the row of each name, in the order of the names. The
-- rows are found one by one: as a join of two tables, a plan could read the whole namespace.
create or replace function holdfast.rows_of_3(namespace text, names text[], subjects text[])
returns table (nth bigint, subject text, row_id tid) language sql stable as $$
  select u.nth, u.subject, (select o.ctid from holdfast.name o
      where o.namespace = rows_of_3.namespace and o.key = u.name)
    from unnest(names, subjects) with ordinality as u (name, subject, nth)
    order by u.name collate "C"
$$;

-- One command for many names, in their order. The reply is null where apply_3 has to judge.
create or replace function holdfast.apply_to_many_3(
  namespace text, names text[], subjects text[], c holdfast.command_3, now_us bigint
) returns text[] language plpgsql as $$
declare
  replies text[] := array_fill(null::text, array[cardinality(names)]);
  x record;
begin
  if c.verb = 'acquire' and c.is_exclusive and holdfast.is_noted_3(c.ttl, now_us) then
    for x in
      update holdfast.name o set
        last = holdfast.next_token_3(greatest(o.last, c.seen), now_us) + c.span - 1,
        lease = holdfast.lease_of_3(
          c, u.subject, holdfast.next_token_3(greatest(o.last, c.seen), now_us), now_us)
      from holdfast.rows_of_3(apply_to_many_3.namespace, names, subjects) u
      where o.ctid = u.row_id and holdfast.may_grant_3(o, c, now_us)
      returning u.nth, 'G' || (o.lease).token as reply
    loop
      replies[x.nth] := x.reply;
    end loop;
  elsif c.verb = 'release' and c.tombstone = 0 and c.ttl is null then
    for x in
      update holdfast.name o set lease = null
      from holdfast.rows_of_3(apply_to_many_3.namespace, names, subjects) u
      where o.ctid = u.row_id and holdfast.has_single_holder_3(o)
        and holdfast.is_held_by_3(o, u.subject, now_us)
      returning u.nth
    loop
      replies[x.nth] := 'R';
    end loop;
  elsif c.verb = 'renew' and holdfast.is_noted_3(c.ttl, now_us) then
    for x in
      update holdfast.name o set
        last = holdfast.learned_3(o.last, c.seen, now_us),
        lease = holdfast.extended_3(o.lease, c.ttl, c.resumed_by, now_us)
      from holdfast.rows_of_3(apply_to_many_3.namespace, names, subjects) u
      where o.ctid = u.row_id and holdfast.may_extend_3(o, c, now_us)
        and holdfast.is_held_by_3(o, u.subject, now_us)
      returning u.nth, holdfast.renewed_3(o.lease, o.waiting, now_us) as reply
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
create or replace function holdfast.lock_rows_3(namespace text, names text[], makes_rows boolean)
returns text[] language plpgsql as $$
declare
  locked text[];
begin
  if makes_rows then perform holdfast.make_rows_3(namespace, names); end if;
  select array_agg(l.key) into locked from (
    select o.key from holdfast.name o
      where o.namespace = lock_rows_3.namespace and o.key = any (names)
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
create or replace function holdfast.apply_all_3(
  is_synchronous boolean, namespace text, commands holdfast.command_3[], names text[],
  subjects text[], is_careful boolean
) returns text language plpgsql as $$
declare
  now_us constant bigint := holdfast.clock_3();
  slice integer := holdfast.slice_3();
  done integer := 0;
  grants_from bigint;
  c holdfast.command_3;
  locked record;
  x record;
  own text[];
  replies text[] := '{}';
begin
  foreach c in array commands loop
    grants_from := holdfast.grants_from_3(c, is_synchronous, now_us);
    own := case when not is_careful then holdfast.apply_to_many_3(namespace,
      names[done + 1 : done + c.names], subjects[done + 1 : done + c.names], c, now_us) end;
    for nth in 1 .. c.names loop
      if own[nth] is not null then continue; end if;
      locked := holdfast.lock_row_3(namespace, names[done + nth], false);
      if is_careful then
        x := holdfast.apply_carefully_3(
          locked.r, locked.is_found, subjects[done + nth], c, now_us, grants_from, slice);
      else
        x := holdfast.apply_3(
          locked.r, locked.is_found, subjects[done + nth], c, now_us, grants_from, slice);
      end if;
      slice := x.slice;
      own[nth] := x.reply;
    end loop;
    replies := replies || own;
    done := done + c.names;
  end loop;
  return now_us || holdfast.run_3() || array_to_string(replies, chr(10));
end $$;

-- The time of a single name is read before its row is locked. Where the UPDATE waits for another
-- batch, it judges the new row, and counts as having run at its earlier time: a lease only gets
-- shorter by that. The limit "not after" is the exception, because its sender may have given up
-- meanwhile: it is judged by the clock after the wait. The UPDATE judges a row again only if the
-- other transaction changed it, so the limit is judged once more at the end.
create or replace function holdfast.execute_3(
  namespace text, is_synchronous boolean, commands holdfast.command_3[], names text[],
  subjects text[]
) returns text language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '5s'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
  now_us bigint := holdfast.clock_3();
  c holdfast.command_3;
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
      if c.is_exclusive and holdfast.is_noted_3(c.ttl, now_us) then
        update holdfast.name o set
          last = holdfast.next_token_3(greatest(o.last, c.seen), now_us) + c.span - 1,
          lease = holdfast.lease_of_3(
            c, subjects[1], holdfast.next_token_3(greatest(o.last, c.seen), now_us), now_us)
        where o.namespace = execute_3.namespace and o.key = names[1]
          and holdfast.may_grant_3(o, c, now_us) and c.not_after >= holdfast.clock_3()
        returning 'G' || (o.lease).token into reply;
      end if;
    elsif c.verb = 'release' then
      if c.tombstone = 0 and c.ttl is null then
        -- With waiters, this only locks the row.
        update holdfast.name o set lease = case when o.waiting > 0 then o.lease end
        where o.namespace = execute_3.namespace and o.key = names[1]
          and holdfast.needs_no_upkeep_3(o, now_us)
          and holdfast.is_held_by_3(o, subjects[1], now_us)
        returning o.* into r;
        is_found := found;
        if r.waiting = 0 then
          durability := holdfast.forgo_disk_3();
          reply := 'R';
        elsif is_found then
          -- The next holder waits for this answer: nothing but serve_3 is between the two.
          now_us := holdfast.clock_3();
          if holdfast.is_held_by_3(r, subjects[1], now_us)
            and holdfast.needs_no_upkeep_3(r, now_us) then
            r.lease := null;
            x := holdfast.serve_3(r, now_us, holdfast.grants_from_3(c, is_synchronous, now_us),
              holdfast.slice_3(), false);
            r := x.r;
            update holdfast.name o set last = r.last, shared = r.shared,
              shared_weight = r.shared_weight, waiting = r.waiting, lease = r.lease
            where o.namespace = r.namespace and o.key = r.key;
            next := case when r.shared = 0 then r.lease else holdfast.next_to_expire_3(r) end;
            reply := holdfast.released_3(true, next, x.behind and r.waiting > 0, now_us);
          end if;
        end if;
      end if;
    elsif c.verb in ('renew', 'confirm') then
      update holdfast.name o set
        last = holdfast.learned_3(o.last, coalesce(c.seen, 0), now_us),
        lease = holdfast.extended_3(o.lease, c.ttl, c.resumed_by, now_us)
      where o.namespace = execute_3.namespace and o.key = names[1]
        and holdfast.may_extend_3(o, c, now_us) and holdfast.is_held_by_3(o, subjects[1], now_us)
        and holdfast.is_noted_3(coalesce(c.ttl, (o.lease).ttl), now_us)
        and coalesce(c.not_after >= holdfast.clock_3(), true)
      returning holdfast.renewed_3(o.lease, o.waiting, now_us) into reply;
    end if;
    if reply is not null then
      if c.not_after < holdfast.clock_3() then
        raise 'the command waited for too long' using errcode = 'serialization_failure';
      end if;
      return now_us || holdfast.run_3() || reply;
    end if;
    if not is_found then
      x := holdfast.lock_row_3(namespace, names[1], holdfast.needs_row_3(c));
      r := x.r;
      is_found := x.is_found;
    end if;
    now_us := holdfast.clock_3();
    x := holdfast.apply_3(r, is_found, subjects[1], c, now_us,
      holdfast.grants_from_3(c, is_synchronous, now_us), holdfast.slice_3());
    return now_us || holdfast.run_3() || x.reply;
  else
    -- Most batches are one command for names that have nothing but an exclusive holder. Otherwise
    -- the changes of this block are undone with their locks, so that all rows can be locked in
    -- order. The limit "not after" was judged before the wait for the last row.
    if cardinality(commands) = 1 and (commands[1]).verb in ('acquire', 'release', 'renew') then
      begin
        replies := holdfast.apply_to_many_3(namespace, names, subjects, commands[1], now_us);
        if array_position(replies, null) is null
          and coalesce((commands[1]).not_after >= holdfast.clock_3(), true) then
          return now_us || holdfast.run_3() || array_to_string(replies, chr(10));
        end if;
        raise 'not only such names' using errcode = 'LF000';
      exception when sqlstate 'LF000' or data_exception or integrity_constraint_violation then
      end;
    end if;
    names := holdfast.lock_rows_3(namespace, names, exists (
      select from unnest(commands) o where holdfast.needs_row_3(o)));
    begin
      return holdfast.apply_all_3(is_synchronous, namespace, commands, names, subjects, false);
    exception when data_exception or integrity_constraint_violation then
      return holdfast.apply_all_3(is_synchronous, namespace, commands, names, subjects, true);
    end;
  end if;
end $$;
