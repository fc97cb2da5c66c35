-- Holders and waiters of one name. `r` is the row of the name, which the batch has locked; the
-- functions change it, and apply_1 writes it back.

-- Whether a request may join the holders (rules/fits.ts).
create or replace function holdfast.fits_1(
  r holdfast.name, is_exclusive boolean, weight bigint, most bigint
) returns boolean language plpgsql as $$
begin
  if r.owner is null and r.shared = 0 then return weight <= most; end if;
  if r.owner is not null or is_exclusive then return false; end if;
  return r.shared_weight + weight <= least(most, (
    select min(h.most) from holdfast.holder h where h.namespace = r.namespace and h.key = r.key
  ));
end $$;

-- The exclusive holder, in the form of a shared one.
create or replace function holdfast.exclusive_1(r holdfast.name) returns holdfast.holder
language plpgsql as $$
declare
  h holdfast.holder;
begin
  if r.owner is null then return null; end if;
  h.namespace := r.namespace; h.key := r.key; h.token := r.token; h.granted := r.granted;
  h.expiry := r.expiry; h.ttl := r.ttl; h.weight := r.weight; h.most := r.most;
  h.span := r.span; h.confirmed := r.confirmed; h.owner := r.owner; h.client := r.client;
  h.meta := r.meta;
  return h;
end $$;

-- The holder that expires first; of two that expire together, the older grant.
create or replace function holdfast.next_1(r holdfast.name) returns holdfast.holder
language plpgsql as $$
declare
  h holdfast.holder;
begin
  if r.owner is not null then return holdfast.exclusive_1(r); end if;
  if r.shared = 0 then return null; end if;
  select * into h from holdfast.holder o
    where o.namespace = r.namespace and o.key = r.key order by o.expiry, o.token limit 1;
  return h;
end $$;

-- Adds a holder. An exclusive one is in the row of the name.
create or replace function holdfast.put_holder_1(
  inout r holdfast.name, is_exclusive boolean, h holdfast.holder
) language plpgsql as $$
begin
  if is_exclusive then
    r.token := h.token; r.granted := h.granted; r.expiry := h.expiry; r.ttl := h.ttl;
    r.weight := h.weight; r.most := h.most; r.span := h.span; r.confirmed := h.confirmed;
    r.owner := h.owner; r.client := h.client; r.meta := h.meta;
  else
    h.namespace := r.namespace;
    h.key := r.key;
    insert into holdfast.holder values (h.*);
    r.shared := r.shared + 1;
    r.shared_weight := r.shared_weight + h.weight;
  end if;
end $$;

create or replace function holdfast.drop_holder_1(inout r holdfast.name, h holdfast.holder)
language plpgsql as $$
begin
  if r.owner = h.owner then
    r.owner := null; r.client := null; r.meta := null;
  else
    delete from holdfast.holder o
      where o.namespace = r.namespace and o.key = r.key and o.token = h.token;
    r.shared := greatest(r.shared - 1, 0);
    r.shared_weight := greatest(r.shared_weight - h.weight, 0);
  end if;
end $$;

-- Keeps the changed fields of a holder.
create or replace function holdfast.update_holder_1(inout r holdfast.name, h holdfast.holder)
language plpgsql as $$
begin
  if r.owner = h.owner then
    r.expiry := h.expiry; r.ttl := h.ttl; r.confirmed := h.confirmed; r.client := h.client;
  else
    update holdfast.holder o
      set expiry = h.expiry, ttl = h.ttl, confirmed = h.confirmed, client = h.client
      where o.namespace = r.namespace and o.key = r.key and o.token = h.token;
  end if;
end $$;

-- Removes an expired holder. One that never confirmed its grant makes its client a suspect, unless
-- the client has spoken since the grant ended.
create or replace function holdfast.lapse_1(inout r holdfast.name, h holdfast.holder)
language plpgsql as $$
begin
  r := holdfast.drop_holder_1(r, h);
  if h.confirmed or r.waiting = 0 then return; end if;
  update holdfast.client c set suspect = true
    where c.namespace = r.namespace and c.key = r.key and c.id = h.client
      and not c.suspect and c.gone - 3 * c.touch < h.expiry;
end $$;

-- The holder of an owner. One that has expired goes at once, however many are to be dropped before.
create or replace function holdfast.holder_of_1(
  inout r holdfast.name, holder_owner text, now_us bigint, out h holdfast.holder
) language plpgsql as $$
begin
  if r.owner = holder_owner then
    h := holdfast.exclusive_1(r);
  elsif r.shared > 0 then
    select * into h from holdfast.holder o
      where o.namespace = r.namespace and o.key = r.key and o.owner = holder_owner;
  end if;
  if h.owner is null or h.expiry > now_us then return; end if;
  r := holdfast.lapse_1(r, h);
  h := null;
end $$;
