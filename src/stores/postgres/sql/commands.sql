-- The commands. Each changes the row `r` of its name, after the upkeep (apply.sql), and replies.

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
  elsif now_us >= grants_from and (holdfast.is_free_2(r)
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
    -- The request that `grants_from` keeps waiting: that of the first waiter.
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
