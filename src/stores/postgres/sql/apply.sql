-- The ledger (rules/ledger.ts): what a command does to the state of one name at one instant.

-- Makes the rows of the names that have none, from the floor of the namespace. The floor is read
-- by a statement after the insert: it then has the tokens of rows that were removed before. In
-- other isolation levels that statement would not see them.
create or replace function holdfast.make_rows_3(namespace text, names text[]) returns void
language plpgsql as $$
declare
  missing text[];
  start bigint;
begin
  missing := array(
    select distinct k collate "C" from unnest(names) k
      where not exists (select from holdfast.name o
        where o.namespace = make_rows_3.namespace and o.key = k)
      order by 1);
  if missing = '{}' then return; end if;
  if current_setting('transaction_isolation') <> 'read committed' then
    raise 'holdfast needs the isolation level "read committed"'
      using errcode = 'LF002', hint = 'Set default_transaction_isolation for this connection.';
  end if;
  insert into holdfast.name (namespace, key) select make_rows_3.namespace, k from unnest(missing) k
    on conflict do nothing;
  select s.floor into start from holdfast.namespace s where s.name = make_rows_3.namespace;
  if start > 0 then
    update holdfast.name o set last = start
      where o.namespace = make_rows_3.namespace and o.key = any (missing) and o.last < start;
  end if;
end $$;

-- A name without a row has no state: only these commands can give it some.
create or replace function holdfast.needs_row_3(c holdfast.command_3) returns boolean
language sql immutable as $$
  select c.verb in ('acquire', 'renew') or coalesce(c.tombstone > 0, false)
$$;

-- The ttl of the lease that a command makes or extends. A confirm and a handoff note it themselves.
create or replace function holdfast.noted_ttl_3(c holdfast.command_3) returns bigint
language sql immutable as $$
  select case when c.verb in ('acquire', 'renew') then c.ttl else 0 end
$$;

-- Notes the ttl of a command where that is due (run.sql). Returns the time from which free names
-- are granted. With a synchronous standby no commit is lost, and they never wait.
create or replace function holdfast.grants_from_3(
  c holdfast.command_3, is_synchronous boolean, now_us bigint
) returns bigint language sql volatile as $$
  select case when holdfast.is_noted_3(holdfast.noted_ttl_3(c), now_us) then 0
    else least(holdfast.note_3(holdfast.noted_ttl_3(c), now_us),
      case when is_synchronous then 0 end) end
$$;

-- The row of a name, locked; a row without state if there is none and none is needed. A row lock is
-- written to the log. So a commit that only tells a grant again waits for the disk and for
-- standbys, and with it the commit of that grant, which may have given up waiting.
create or replace function holdfast.lock_row_3(
  namespace text, name text, is_needed boolean, out r holdfast.name, out is_found boolean
) language plpgsql as $$
begin
  for attempt in 1 .. 2 loop
    select * into r from holdfast.name o
      where o.namespace = lock_row_3.namespace and o.key = lock_row_3.name for update;
    is_found := found;
    exit when is_found or not is_needed or attempt = 2;
    perform holdfast.make_rows_3(namespace, array[name]);
  end loop;
  if is_found then return; end if;
  r.namespace := namespace; r.key := name; r.last := 0; r.shared := 0; r.shared_weight := 0;
  r.waiting := 0; r.place := 0; r.silent := 0; r.last_tombstone := 0;
end $$;

-- One command to a name, whose row is locked; the clock was read afterwards. `subject` is the
-- owner, client or token of the command. `slice` is what is left of the slice of the batch.
create or replace function holdfast.apply_3(
  r holdfast.name, is_found boolean, subject text, c holdfast.command_3, now_us bigint,
  grants_from bigint, inout slice integer, out reply text
) language plpgsql as $$
declare
  before constant holdfast.name := r;
  behind boolean := false;
  new_gone bigint;
  x record;
begin
  perform holdfast.refuse_damage_3(holdfast.is_row_sound_3(r));
  if (r.lease).expiry <= now_us or not holdfast.needs_no_upkeep_3(r, now_us) then
    x := holdfast.expire_3(r, now_us, slice);
    r := x.r; slice := x.slice; behind := x.behind;
  end if;
  if r.waiting > 0 then
    if c.verb in ('acquire', 'heartbeat') then
      update holdfast.client o set unresponsive = false,
        gone = now_us + holdfast.silent_periods_3() * o.heartbeat,
        connection = holdfast.connection_3()
        where o.namespace = r.namespace and o.key = r.key and o.id = coalesce(c.client, subject)
        returning o.gone into new_gone;
      r.silent := least(r.silent, new_gone);
    end if;
    -- An exclusive holder is in the way of every waiter.
    if (r.lease).owner is null or r.mark_until is not null then
      x := holdfast.serve_3(r, now_us, grants_from, slice, behind);
      r := x.r; slice := x.slice; behind := x.behind;
    end if;
  end if;
  case c.verb
    when 'release' then
      x := holdfast.release_3(r, c, subject, now_us, grants_from, slice, behind);
      r := x.r; slice := x.slice; reply := x.reply;
    when 'acquire' then
      x := holdfast.acquire_3(r, c, subject, now_us, grants_from);
      r := x.r; reply := x.reply;
    when 'renew', 'confirm' then
      x := holdfast.extend_3(r, c, subject, now_us);
      r := x.r; reply := x.reply;
    when 'heartbeat' then
      reply := holdfast.heartbeat_3(r, subject, now_us, grants_from, behind);
    when 'inspect' then
      reply := 'I' || holdfast.view_3(r, now_us)::text;
    when 'revoke' then
      x := holdfast.revoke_3(r, c, subject::bigint, now_us, grants_from, slice, behind);
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
create or replace function holdfast.apply_carefully_3(
  r holdfast.name, is_found boolean, subject text, c holdfast.command_3, now_us bigint,
  grants_from bigint, inout slice integer, out reply text
) language plpgsql as $$
declare
  x record;
begin
  x := holdfast.apply_3(r, is_found, subject, c, now_us, grants_from, slice);
  slice := x.slice; reply := x.reply;
exception when data_exception or integrity_constraint_violation then
  reply := '!' || to_json(sqlerrm);
end $$;
