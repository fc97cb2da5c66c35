-- Holders of one name. `r` is the row of the name, which the batch has locked; the functions change
-- it, and apply_3 writes it back. An exclusive holder is in that row; shared holders have a table.

create or replace function holdfast.as_lease_3(h holdfast.holder) returns holdfast.lease
language sql immutable as $$
  select row(h.token, h.granted, h.expiry, h.ttl, h.weight, h.weight_limit, h.span, h.confirmed,
    h.owner, h.client, h.meta)::holdfast.lease
$$;

-- Whether a request may join those who hold the name already (rules/fits.ts).
create or replace function holdfast.may_join_3(
  r holdfast.name, is_exclusive boolean, weight bigint, weight_limit bigint
) returns boolean language plpgsql as $$
begin
  if is_exclusive or r.shared = 0 then return false; end if;
  return r.shared_weight + weight <= least(weight_limit, (
    select min(h.weight_limit) from holdfast.holder h
      where h.namespace = r.namespace and h.key = r.key
  ));
end $$;

-- The holder that expires first; of two that expire together, the older grant.
create or replace function holdfast.next_to_expire_3(r holdfast.name) returns holdfast.lease
language plpgsql as $$
declare
  l holdfast.lease := r.lease;
begin
  if r.shared > 0 then
    select (holdfast.as_lease_3(h)).* into l from holdfast.holder h
      where h.namespace = r.namespace and h.key = r.key order by h.expiry, h.token limit 1;
    perform holdfast.refuse_damage_3(l.owner is null or holdfast.is_lease_sound_3(l));
  end if;
  return l;
end $$;

create or replace function holdfast.put_holder_3(
  inout r holdfast.name, is_exclusive boolean, l holdfast.lease
) language plpgsql as $$
begin
  -- The terms of a waiter come from its row.
  perform holdfast.refuse_damage_3(holdfast.is_lease_sound_3(l));
  r.last := l.token + l.span - 1;
  if is_exclusive then
    r.lease := l;
  else
    insert into holdfast.holder values (r.namespace, r.key, (l).*);
    r.shared := r.shared + 1;
    r.shared_weight := r.shared_weight + l.weight;
  end if;
end $$;

create or replace function holdfast.drop_holder_3(inout r holdfast.name, l holdfast.lease)
language plpgsql as $$
begin
  if (r.lease).owner = l.owner then
    r.lease := null;
  else
    delete from holdfast.holder h
      where h.namespace = r.namespace and h.key = r.key and h.token = l.token;
    r.shared := greatest(r.shared - 1, 0);
    r.shared_weight := greatest(r.shared_weight - l.weight, 0);
  end if;
end $$;

-- Keeps what a renewal or a confirm has changed.
create or replace function holdfast.update_holder_3(inout r holdfast.name, l holdfast.lease)
language plpgsql as $$
begin
  if (r.lease).owner = l.owner then
    r.lease := l;
  else
    update holdfast.holder h
      set expiry = l.expiry, ttl = l.ttl, confirmed = l.confirmed, client = l.client
      where h.namespace = r.namespace and h.key = r.key and h.token = l.token;
  end if;
end $$;

-- Removes an expired holder. One that never confirmed its grant makes its client unresponsive,
-- unless the client has spoken since the grant ended.
create or replace function holdfast.lapse_3(inout r holdfast.name, l holdfast.lease)
language plpgsql as $$
begin
  r := holdfast.drop_holder_3(r, l);
  if l.confirmed or r.waiting = 0 then return; end if;
  update holdfast.client c set unresponsive = true
    where c.namespace = r.namespace and c.key = r.key and c.id = l.client
      and not c.unresponsive and c.gone - holdfast.silent_periods_3() * c.heartbeat < l.expiry;
end $$;

-- The holder of an owner. One that has expired goes at once, however many are to be dropped before.
create or replace function holdfast.holder_of_3(
  inout r holdfast.name, asker text, now_us bigint, out l holdfast.lease
) language plpgsql as $$
begin
  if (r.lease).owner = asker then
    l := r.lease;
  elsif r.shared > 0 then
    select (holdfast.as_lease_3(h)).* into l from holdfast.holder h
      where h.namespace = r.namespace and h.key = r.key and h.owner = asker;
  end if;
  if l.owner is null then return; end if;
  perform holdfast.refuse_damage_3(holdfast.is_lease_sound_3(l));
  if l.expiry > now_us then return; end if;
  r := holdfast.lapse_3(r, l);
  l := null;
end $$;
