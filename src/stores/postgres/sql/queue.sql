-- The queue of one name, and the upkeep that every command does before it acts (rules/upkeep.ts).
--
-- NOTIFY does not say whether anyone listens. So each client takes a session advisory lock with a
-- random key when it connects (session.ts), and its rows in holdfast.client keep that key. The
-- server frees the lock when the connection ends: while nobody has it, no push reaches the client.
-- Only the order of the queue depends on this, never whether a name is free: a client that is taken
-- for dead is passed over until its next word, and one that is taken for alive costs an offer.

-- The key of this connection; null behind a pooler that lends it for one transaction.
create or replace function holdfast.connection_3() returns bigint language sql stable as $$
  select nullif(current_setting('holdfast.connection', true), '')::bigint
$$;

-- Whether a push may reach the client of this connection. Locks of one session never conflict, so
-- the lock of this connection proves nothing here.
create or replace function holdfast.is_reachable_3(connection bigint) returns boolean
language sql volatile as $$
  select case when connection is null or connection = holdfast.connection_3() then true
    else not pg_try_advisory_xact_lock_shared(connection) end
$$;

create or replace function holdfast.enqueue_3(
  inout r holdfast.name, w holdfast.waiter, heartbeat bigint, now_us bigint
) language plpgsql as $$
declare
  gone constant bigint := now_us + holdfast.silent_periods_3() * heartbeat;
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
    values (r.namespace, r.key, w.client, r.place, heartbeat, gone, 1, false,
      holdfast.connection_3())
    on conflict (namespace, key, id) do update set
      waiting = c.waiting + 1,
      heartbeat = greatest(c.heartbeat, excluded.heartbeat),
      gone = greatest(c.gone, excluded.gone);
end $$;

-- Removes a waiter, and with its last one the client.
create or replace function holdfast.drop_waiter_3(inout r holdfast.name, w holdfast.waiter)
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
create or replace function holdfast.push_3(client text, message text) returns void
language sql volatile as $$
  select case when octet_length(client) between 1 and 48
      and pg_notification_queue_usage() < 0.9 then
    pg_notify('holdfast:' || client,
      case when octet_length(message) < 8000 then message else '?' end) end
$$;

-- Drops what has expired: holders in a slice, tombstones, the mark, and clients that were silent
-- for too long.
create or replace function holdfast.expire_3(
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
    l := holdfast.next_to_expire_3(r);
    exit when l.owner is null or l.expiry > now_us;
    if done > 0 then
      behind := slice = 0;
      exit when behind;
      slice := slice - 1;
    end if;
    r := holdfast.lapse_3(r, l);
    done := done + 1;
  end loop;
  if r.last_tombstone > 0 then
    delete from holdfast.tombstone t where t.ctid = any (array(
      select o.ctid from holdfast.tombstone o
        where o.namespace = r.namespace and o.key = r.key and o.until <= now_us
        order by o.until limit holdfast.max_tombstones_3()));
    get diagnostics dropped = row_count;
    if r.last_tombstone <= now_us and dropped < holdfast.max_tombstones_3() then
      r.last_tombstone := 0;
    end if;
  end if;
  if r.mark_until <= now_us then r.mark_until := null; end if;
  if r.waiting = 0 or r.silent > now_us then return; end if;
  for step in 1 .. holdfast.max_dropped_3() loop
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
create or replace function holdfast.serve_3(
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
    -- The first waiter whose client is responsive. As a join, a plan could read the whole queue.
    select v as waiter, (select c.connection from holdfast.client c
        where c.namespace = r.namespace and c.key = r.key and c.id = v.client) as connection
      into head from holdfast.waiter v
      where v.namespace = r.namespace and v.key = r.key and v.place = (
        select c.place from holdfast.client c
          where c.namespace = r.namespace and c.key = r.key and not c.unresponsive
          order by c.place limit 1);
    exit when not found;
    w := head.waiter;
    token := holdfast.next_token_3(r.last, now_us);
    exit when r.mark_until is null and (token > holdfast.max_token_3()
      or not holdfast.is_free_3(r)
        and not holdfast.may_join_3(r, w.exclusive, w.weight, w.weight_limit));
    if done > 0 then
      behind := slice = 0;
      exit when behind;
      slice := slice - 1;
    end if;
    done := done + 1;
    if r.mark_until is not null then
      r := holdfast.drop_waiter_3(r, w);
      perform holdfast.push_3(w.client,
        json_build_array('m', r.key, w.owner, r.mark_token, r.mark_meta)::text);
    elsif holdfast.is_reachable_3(head.connection) then
      r := holdfast.drop_waiter_3(r, w);
      if not holdfast.is_noted_3(w.ttl, now_us) then
        perform holdfast.note_3(w.ttl, now_us);
      end if;
      r := holdfast.put_holder_3(r, w.exclusive, holdfast.offer_to_3(w, token, now_us));
      perform holdfast.push_3(w.client, json_build_array(
        'g', r.key, w.owner, token, w.span, now_us, now_us + w.offer)::text);
    else
      update holdfast.client c set unresponsive = true
        where c.namespace = r.namespace and c.key = r.key and c.id = w.client;
    end if;
  end loop;
end $$;
