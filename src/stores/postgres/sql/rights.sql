-- A role with USAGE on the schema and EXECUTE on the entry functions can do everything.
revoke all on all tables in schema holdfast from public;
revoke all on all functions in schema holdfast from public;

insert into holdfast.server (version, system, timeline)
  values (1, holdfast.system_1(), holdfast.timeline_1()) on conflict do nothing;
-- Not part of the insert: that would lock a row which batches may wait for.
update holdfast.server set version = 1 where version < 1;
