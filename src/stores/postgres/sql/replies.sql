-- Replies as texts. The first letter says which, a JSON array has the rest (codec.ts). No reply has
-- a line break: they are told apart by it.

create or replace function holdfast.holder_json_3(h holdfast.lease, is_exclusive boolean,
  now_us bigint) returns jsonb language sql stable as $$
  select jsonb_build_array(h.expiry - now_us, h.token, h.span,
    case when is_exclusive then 'x' else 's' end, h.weight, h.weight_limit, now_us - h.granted,
    h.meta)
$$;

-- The blockage of the request `w`: the holder that expires first, and the time until then. If no
-- holder is in its way, the time until names are granted again.
create or replace function holdfast.blockage_3(
  r holdfast.name, w holdfast.waiter, now_us bigint, grants_from bigint
) returns jsonb language plpgsql as $$
declare
  l holdfast.lease := holdfast.next_to_expire_3(r);
begin
  if l.owner is null or now_us < grants_from
    and holdfast.may_join_3(r, w.exclusive, w.weight, w.weight_limit) then
    return jsonb_build_array(greatest(0, grants_from - now_us));
  end if;
  return holdfast.holder_json_3(l, r.shared = 0, now_us);
end $$;

create or replace function holdfast.mark_json_3(r holdfast.name, now_us bigint) returns jsonb
language sql stable as $$
  select case when r.mark_until > now_us then
    jsonb_build_array(r.mark_token, r.mark_until - now_us, r.mark_meta) end
$$;

create or replace function holdfast.renewed_3(
  l holdfast.lease, waiting integer, now_us bigint
) returns text language sql stable as $$
  select 'N[' || l.expiry - now_us || case when waiting > 0 then ',true,' else ',false,' end ||
    l.token || ',' || l.span || ']'
$$;

-- `next` is the holder that expires first, perhaps one that was just served; `more`: there are
-- more waiters to serve.
create or replace function holdfast.released_3(
  was_held boolean, next holdfast.lease, more boolean, now_us bigint
) returns text language sql stable as $$
  select 'R' || json_build_array(was_held, case when next.owner is null or next.confirmed then 0
    else greatest(0, next.expiry - now_us) end, more)
$$;

-- The reply to a renewal or confirm without a holder: whether it was revoked, and why.
create or replace function holdfast.gone_3(r holdfast.name, ended text, now_us bigint)
returns text language plpgsql as $$
declare
  why text;
begin
  if r.last_tombstone > now_us then
    select t.reason into why from holdfast.tombstone t
      where t.namespace = r.namespace and t.key = r.key and t.owner = ended and t.until > now_us;
  end if;
  if why is not null then return 'O' || json_build_array('v', why); end if;
  return case when (r.lease).owner is null then 'O["m",""]' else 'O["r",""]' end;
end $$;

-- The state of a name: [holders, waiters, mark].
create or replace function holdfast.view_3(r holdfast.name, now_us bigint) returns jsonb
language plpgsql as $$
declare
  holders jsonb := '[]';
  waiters jsonb := '[]';
begin
  if (r.lease).expiry > now_us then
    holders := jsonb_build_array(holdfast.holder_json_3(r.lease, true, now_us));
  elsif r.shared > 0 then
    select coalesce(jsonb_agg(holdfast.holder_json_3(holdfast.as_lease_3(h), false, now_us)
        order by h.token), '[]')
      into holders from holdfast.holder h
      where h.namespace = r.namespace and h.key = r.key and h.expiry > now_us;
  end if;
  if r.waiting > 0 then
    select coalesce(jsonb_agg(jsonb_build_array(case when w.exclusive then 'x' else 's' end,
        w.weight, w.weight_limit, now_us - w.since, w.meta) order by w.place), '[]')
      into waiters from holdfast.waiter w
      where w.namespace = r.namespace and w.key = r.key;
  end if;
  return jsonb_build_array(holders, waiters, holdfast.mark_json_3(r, now_us));
end $$;
