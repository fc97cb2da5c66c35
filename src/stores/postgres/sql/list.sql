-- The names in use whose key begins with `prefix`, after the key `after`, in the order of their
-- bytes. It looks at no more than `most` rows, and locks none.
--
-- returns: the time; a line with the JSON of the key to go on after, or null at the end; then a
-- line [key, view] for each name.
create or replace function holdfast.list_1(space text, prefix text, after text, most integer)
returns text language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  now_us constant bigint := (date_part('epoch', clock_timestamp()) * 1000000)::bigint;
  r holdfast.name;
  view jsonb;
  looked integer := 0;
  lines text[] := '{}';
  following text;
begin
  for r in select * from holdfast.name o
    where o.namespace = space and o.key >= prefix and o.key > after order by o.key
  loop
    exit when not starts_with(r.key, prefix);
    if looked = most then exit; end if;
    looked := looked + 1;
    following := r.key;
    if r.owner is null and r.shared = 0 and r.waiting = 0 and r.mark_until is null then
      continue;
    end if;
    view := holdfast.view_1(r, now_us);
    if view <> '[[], [], null]' then
      lines := lines || jsonb_build_array(r.key, view)::text;
    end if;
  end loop;
  if looked < most then following := null; end if;
  return array_to_string(
    array[now_us::text, coalesce(to_json(following)::text, 'null')] || lines, chr(10));
end $$;
