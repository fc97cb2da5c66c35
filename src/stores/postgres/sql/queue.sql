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

-- Counts a removed waiter off its client, and removes the client with its last waiter. `others` is
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
-- instead that the work is done. No name is handed off before `grants_from` (run.sql).
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
