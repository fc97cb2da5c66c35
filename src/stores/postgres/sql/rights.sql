-- A role with USAGE on the schema and EXECUTE on the entry functions can do everything.
revoke all on all functions in schema holdfast from public;

-- The default privileges of this role may have given others rights on the tables. A role that may
-- make a trigger there could have its own code run with the rights of this one.
do $$
declare
  other text;
begin
  for other in
    select distinct case a.grantee when 0 then 'public' else a.grantee::regrole::text end
      from pg_class c, aclexplode(c.relacl) a
      where c.relnamespace = 'holdfast'::regnamespace and a.grantee <> c.relowner
  loop
    execute 'revoke all on all tables in schema holdfast from ' || other || ' cascade';
  end loop;
end $$;

insert into holdfast.server (version, system, timeline)
  values (3, holdfast.system_3(), holdfast.timeline_3()) on conflict do nothing;
-- Not part of the insert: that would lock a row which batches may wait for.
update holdfast.server set version = 3 where version < 3;
