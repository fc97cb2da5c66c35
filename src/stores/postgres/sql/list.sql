-- The names in use whose key begins with `prefix`, after the key `after`, in the order of their
-- bytes. It looks at no more than `max_rows` rows, and locks none.
--
-- returns: the time; a line with the JSON of the key to go on after, or null at the end; then a
-- line [key, view] for each name.
create or replace function holdfast.list_3(
  namespace text, prefix text, after text, max_rows integer
) returns text language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  now_us constant bigint := holdfast.clock_3();
  r holdfast.name;
  view jsonb;
  looked integer := 0;
  lines text[] := '{}';
  following text;
begin
  for r in select * from holdfast.name o
    where o.namespace = list_3.namespace and o.key >= prefix and o.key > after order by o.key
  loop
    exit when not starts_with(r.key, prefix);
    if looked = max_rows then exit; end if;
    looked := looked + 1;
    following := r.key;
    if (r.lease).owner is null and r.shared = 0 and r.waiting = 0 and r.mark_until is null then
      continue;
    end if;
    -- A damaged row is a line of its own, which the client cannot read and reports.
    begin
      view := holdfast.view_3(r, now_us);
    exception when data_exception then
      view := to_jsonb(sqlerrm);
    end;
    if view <> '[[], [], null]' then
      lines := lines || jsonb_build_array(r.key, view)::text;
    end if;
  end loop;
  if looked < max_rows then following := null; end if;
  return array_to_string(
    array[now_us::text, coalesce(to_json(following)::text, 'null')] || lines, chr(10));
end $$;
