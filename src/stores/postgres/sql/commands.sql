-- The commands. Each changes the row `r` of its name, after the upkeep (apply.sql), and replies.

-- Leaves a tombstone: nothing that is still under way for this owner may act until it ends. A
-- revocation keeps its reason.
create or replace function holdfast.leave_tombstone_3(
  inout r holdfast.name, ended text, until bigint, now_us bigint, reason text
) language plpgsql as $$
begin
  r.last_tombstone := greatest(r.last_tombstone, until);
  insert into holdfast.tombstone as t
    values (r.namespace, r.key, ended, leave_tombstone_3.until, leave_tombstone_3.reason)
    on conflict (namespace, key, owner) do update set
      until = case when t.until > now_us then greatest(t.until, excluded.until)
        else excluded.until end,
      reason = coalesce(excluded.reason, case when t.until > now_us then t.reason end);
end $$;

create or replace function holdfast.has_tombstone_3(r holdfast.name, asker text, now_us bigint)
returns boolean language plpgsql as $$
begin
  return r.last_tombstone > now_us and exists (select from holdfast.tombstone t where
    t.namespace = r.namespace and t.key = r.key and t.owner = asker and t.until > now_us);
end $$;

create or replace function holdfast.acquire_3(
  inout r holdfast.name, c holdfast.command_3, asker text, now_us bigint, grants_from bigint,
  out reply text
) language plpgsql as $$
declare
  l holdfast.lease;
  w holdfast.waiter;
  token bigint;
  x record;
begin
  if not holdfast.are_terms_valid_3(c) then
    reply := 'U["t"]';
    return;
  end if;
  if now_us > c.not_after then
    reply := 'L';
    return;
  end if;
  if holdfast.has_tombstone_3(r, asker, now_us) then
    reply := 'E';
    return;
  end if;
  if not holdfast.is_credible_3(c.seen, r.last, now_us) then
    reply := 'U["s"]';
    return;
  end if;
  r.last := holdfast.learned_3(r.last, c.seen, now_us);
  x := holdfast.holder_of_3(r, asker, now_us);
  r := x.r;
  l := x.l;
  if l.owner is not null then
    x := holdfast.confirm_3(r, l, now_us);
    r := x.r;
    l := x.l;
    reply := 'g' || json_build_array(l.token, l.span, l.expiry - now_us);
    return;
  end if;
  if r.mark_until is not null then
    reply := 'M' || holdfast.mark_json_3(r, now_us)::text;
    return;
  end if;
  w.exclusive := c.is_exclusive; w.weight := c.weight; w.weight_limit := c.weight_limit;
  if r.waiting > 0 and exists (select from holdfast.waiter v where v.namespace = r.namespace
      and v.key = r.key and v.owner = asker) then
    reply := 'Q' || jsonb_build_array(null, holdfast.blockage_3(r, w, now_us, grants_from))::text;
    return;
  end if;
  token := holdfast.next_token_3(r.last, now_us);
  if token > holdfast.max_token_3() then
    reply := 'U["l"]';
  elsif now_us >= grants_from and (holdfast.is_free_3(r)
      or holdfast.may_join_3(r, c.is_exclusive, c.weight, c.weight_limit))
    and not (r.waiting > 0 and exists (select from holdfast.client o
      where o.namespace = r.namespace and o.key = r.key and not o.unresponsive)) then
    r := holdfast.put_holder_3(
      r, c.is_exclusive, holdfast.lease_of_3(c, asker, token, now_us));
    reply := 'G' || token;
  elsif not c.may_wait then
    reply := 'B' || jsonb_build_array(holdfast.blockage_3(r, w, now_us, grants_from))::text;
  elsif c.offer > holdfast.max_lease_us_3()
    or c.heartbeat not between holdfast.min_heartbeat_us_3() and holdfast.max_heartbeat_us_3() then
    reply := 'U["t"]';
  else
    reply := 'Q' || jsonb_build_array(
      r.waiting, holdfast.blockage_3(r, w, now_us, grants_from))::text;
    w.owner := asker; w.client := c.client; w.ttl := c.ttl; w.offer := c.offer;
    w.span := c.span; w.meta := c.meta;
    r := holdfast.enqueue_3(r, w, c.heartbeat, now_us);
  end if;
end $$;

-- The first word of a waiter about its grant gives it the full lease, once.
create or replace function holdfast.confirm_3(
  inout r holdfast.name, inout l holdfast.lease, now_us bigint
) language plpgsql as $$
begin
  if l.confirmed then return; end if;
  if not holdfast.is_noted_3(l.ttl, now_us) then perform holdfast.note_3(l.ttl, now_us); end if;
  l := holdfast.extended_3(l, null::bigint, null::text, now_us);
  r := holdfast.update_holder_3(r, l);
end $$;

-- A renewal or a confirm.
create or replace function holdfast.extend_3(
  inout r holdfast.name, c holdfast.command_3, asker text, now_us bigint, out reply text
) language plpgsql as $$
declare
  l holdfast.lease;
  x record;
begin
  if c.verb = 'renew' then
    if c.ttl > holdfast.max_lease_us_3() then
      reply := 'U["t"]';
      return;
    end if;
    if now_us > c.not_after then
      reply := 'L';
      return;
    end if;
    r.last := holdfast.learned_3(r.last, c.seen, now_us);
  end if;
  x := holdfast.holder_of_3(r, asker, now_us);
  r := x.r;
  l := x.l;
  if l.owner is null then
    reply := holdfast.gone_3(r, asker, now_us);
    return;
  end if;
  if c.verb = 'renew' then
    l := holdfast.extended_3(l, c.ttl, c.resumed_by, now_us);
    r := holdfast.update_holder_3(r, l);
  else
    x := holdfast.confirm_3(r, l, now_us);
    r := x.r;
    l := x.l;
  end if;
  reply := holdfast.renewed_3(l, r.waiting, now_us);
end $$;

create or replace function holdfast.release_3(
  inout r holdfast.name, c holdfast.command_3, asker text, now_us bigint, grants_from bigint,
  inout slice integer, inout behind boolean, out reply text
) language plpgsql as $$
declare
  until constant bigint := least(c.tombstone, now_us + holdfast.max_lease_us_3());
  l holdfast.lease;
  next holdfast.lease;
  w holdfast.waiter;
  x record;
begin
  if until > now_us then r := holdfast.leave_tombstone_3(
      r, asker, until, now_us, null::text); end if;
  x := holdfast.holder_of_3(r, asker, now_us);
  r := x.r;
  l := x.l;
  if l.owner is not null then
    r := holdfast.drop_holder_3(r, l);
    if c.ttl is not null then
      r.mark_until := now_us + c.ttl;
      r.mark_token := l.token;
      r.mark_meta := c.meta;
    end if;
  elsif r.waiting > 0 then
    select * into w from holdfast.waiter v
      where v.namespace = r.namespace and v.key = r.key and v.owner = asker;
    if found then r := holdfast.drop_waiter_3(r, w); end if;
  end if;
  if l.owner is not null or w.owner is not null then
    x := holdfast.serve_3(r, now_us, grants_from, slice, behind);
    r := x.r; slice := x.slice; behind := x.behind;
  end if;
  next := case when r.shared = 0 then r.lease else holdfast.next_to_expire_3(r) end;
  reply := holdfast.released_3(l.owner is not null, next, behind and r.waiting > 0, now_us);
end $$;

create or replace function holdfast.heartbeat_3(
  r holdfast.name, sender text, now_us bigint, grants_from bigint, behind boolean
) returns text language plpgsql as $$
declare
  offered integer := 0;
  grants jsonb := '[]';
  waiting integer := 0;
  l constant holdfast.lease := r.lease;
  w holdfast.waiter;
begin
  if l.owner is not null then
    if l.client = sender and not l.confirmed then
      offered := 1;
      if l.expiry > now_us then
        grants := jsonb_build_array(
          jsonb_build_array(l.owner, l.token, l.span, l.granted, l.expiry));
      end if;
    end if;
  elsif r.shared > 0 then
    select count(*), coalesce(jsonb_agg(
        jsonb_build_array(o.owner, o.token, o.span, o.granted, o.expiry) order by o.token)
        filter (where o.nth <= holdfast.slice_3() and o.expiry > now_us), '[]')
      into offered, grants
      from (select h.*, row_number() over (order by h.token) as nth from holdfast.holder h
        where h.namespace = r.namespace and h.key = r.key and h.client = sender
          and not h.confirmed order by h.token limit holdfast.slice_3() + 1) o;
  end if;
  if r.waiting > 0 then
    select c.waiting into waiting from holdfast.client c
      where c.namespace = r.namespace and c.key = r.key and c.id = sender;
    -- The request that `grants_from` keeps waiting: that of the first waiter.
    if now_us < grants_from then
      select v.* into w from holdfast.waiter v
        where v.namespace = r.namespace and v.key = r.key and v.place = (
          select min(c.place) from holdfast.client c
            where c.namespace = r.namespace and c.key = r.key and not c.unresponsive);
    end if;
  end if;
  return 'T' || jsonb_build_array(coalesce(waiting, 0),
    offered > jsonb_array_length(grants) or behind and r.waiting > 0, grants,
    holdfast.blockage_3(r, w, now_us, grants_from))::text;
end $$;

create or replace function holdfast.revoke_3(
  inout r holdfast.name, c holdfast.command_3, revoked bigint, now_us bigint, grants_from bigint,
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
    select (holdfast.as_lease_3(h)).* into l from holdfast.holder h
      where h.namespace = r.namespace and h.key = r.key and h.token <= revoked
      order by h.token desc limit 1;
  end if;
  if l.owner is null or revoked not between l.token and l.token + l.span - 1
    or l.expiry <= now_us then
    reply := 'V[false]';
    return;
  end if;
  r := holdfast.drop_holder_3(r, l);
  r := holdfast.leave_tombstone_3(r, l.owner, l.expiry, now_us, c.reason);
  perform holdfast.push_3(l.client,
    json_build_array('v', r.key, l.owner, l.token, c.reason)::text);
  x := holdfast.serve_3(r, now_us, grants_from, slice, behind);
  r := x.r; slice := x.slice; behind := x.behind;
  reply := 'V[true]';
end $$;
