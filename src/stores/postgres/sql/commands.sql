-- The commands. Each changes the row `r` of its name, after the upkeep (apply.sql), and replies.

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
