-- The tables of the ledger. A name has one row, which stays and keeps the last token of the name.
-- The common case needs nothing else: the one exclusive holder is in that row. The counts in the
-- row say whether the other tables have rows of the name; otherwise they are not read.
--
-- Times are microseconds of the server's clock. Most tables have no check constraints, because each
-- costs as much as half an UPDATE. The functions refuse rows with values that no command writes
-- (rules.sql): only commands on the same name fail.
create schema if not exists holdfast;

-- The functions run with the rights of the role that makes them. A role that owns the schema, may
-- create in it or has a trigger on a table could have its own code run with these rights. So the
-- schema and all that is in it must belong to this role, and no other role may create in it.
-- The transaction is read committed: an older snapshot would not show what was made meanwhile.
do $$
declare
  this_role constant oid := (select r.oid from pg_roles r where r.rolname = current_user);
  this_schema constant oid := 'holdfast'::regnamespace;
  advice constant text := 'Migrate as the owner, or drop what nobody needs.';
  other record;
begin
  select pg_get_userbyid(n.nspowner) as role into other from pg_namespace n
    where n.oid = this_schema and n.nspowner <> this_role;
  if found then
    raise 'The schema holdfast belongs to the role "%", not to "%"', other.role, current_user
      using errcode = 'LF004', hint = advice;
  end if;
  select pg_get_userbyid(o.owner) as role, o.name into other from (
      select p.proowner as owner, p.oid::regprocedure::text as name, p.pronamespace as schema
        from pg_proc p
      union all select c.relowner, c.oid::regclass::text, c.relnamespace from pg_class c
      union all select t.typowner, t.oid::regtype::text, t.typnamespace from pg_type t
      union all select p.oprowner, p.oid::regoperator::text, p.oprnamespace from pg_operator p
      union all select p.proowner, format('the trigger %I on %s', t.tgname, c.oid::regclass),
        c.relnamespace from pg_trigger t join pg_class c on c.oid = t.tgrelid
        join pg_proc p on p.oid = t.tgfoid where not t.tgisinternal
    ) o where o.schema = this_schema and o.owner <> this_role limit 1;
  if found then
    raise 'The role "%" owns % in the schema holdfast', other.role, other.name
      using errcode = 'LF004', hint = advice;
  end if;
  revoke all on schema holdfast from public;
  select pg_get_userbyid(a.grantee) as role into other
    from pg_namespace n, aclexplode(n.nspacl) a
    where n.oid = this_schema and a.privilege_type = 'CREATE' and a.grantee <> this_role limit 1;
  if found then
    raise 'The role "%" may create in the schema holdfast', other.role
      using errcode = 'LF004', hint = 'Revoke that, in the default privileges as well.';
  end if;
end $$;

-- Versions 1 and 2 were never released. Version 1 kept the exclusive holder in columns, version 2
-- had other names for the columns of a client.
do $$
begin
  if exists (select from pg_attribute a where not a.attisdropped
      and (a.attrelid = to_regclass('holdfast.name') and a.attname = 'owner'
        or a.attrelid = to_regclass('holdfast.client') and a.attname = 'touch')) then
    raise 'The tables of the schema holdfast have the layout of an unreleased version'
      using errcode = 'LF005', hint = 'drop schema holdfast cascade, while no program uses locks.';
  end if;
end $$;

-- The types. Two migrations wait for each other, so what is missing here stays missing.
do $$
begin
  -- The terms of a command; those that its verb does not need are null. Times are microseconds.
  if to_regtype('holdfast.command_3') is null then
    create type holdfast.command_3 as (
      -- acquire, confirm, renew, release, heartbeat, inspect or revoke
      verb text,
      -- How many names the command is for: one after the other in the names of the batch.
      names integer,
      -- acquire and renew; a release that leaves a mark has the length of the mark
      ttl bigint,
      -- acquire and renew: not after this time; and the highest token that the client has seen
      not_after bigint, seen bigint,
      -- acquire; a release that leaves a mark has its meta
      client text, is_exclusive boolean, weight bigint, weight_limit bigint, span bigint,
      offer bigint, heartbeat bigint, may_wait boolean, meta text,
      -- renew: the client that the lease belongs to from now on, or null
      resumed_by text,
      -- release: the end of the tombstone
      tombstone bigint,
      -- revoke
      reason text
    );
  end if;
  if to_regtype('holdfast.lease') is null then
    create type holdfast.lease as (
      token bigint, granted bigint, expiry bigint, ttl bigint, weight bigint, weight_limit bigint,
      span integer, confirmed boolean, owner text, client text, meta text
    );
  end if;
end $$;

create table if not exists holdfast.name (
  namespace text collate "C" not null,
  key text collate "C" not null,
  -- The last token of this name.
  last bigint not null default 0,
  -- How many rows the name has in holdfast.holder, and the sum of their weights.
  shared integer not null default 0,
  shared_weight bigint not null default 0,
  -- How many rows it has in holdfast.waiter, and the last place in the queue.
  waiting integer not null default 0,
  place bigint not null default 0,
  -- No waiting client is silent for too long before this time.
  silent bigint not null default 0,
  -- The end of the last tombstone; 0: there is none in holdfast.tombstone.
  last_tombstone bigint not null default 0,
  -- The exclusive holder; null where there is none.
  lease holdfast.lease,
  -- The mark of a finished once; the time is null where there is none.
  mark_until bigint,
  mark_token bigint,
  mark_meta text,
  primary key (namespace, key)
) with (
  -- Room for new versions of a row on its own page: no index changes, so updates are HOT.
  fillfactor = 30,
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_cost_delay = 0
);

-- The shared holders of a name.
create table if not exists holdfast.holder (
  namespace text collate "C" not null,
  key text collate "C" not null,
  token bigint not null,
  granted bigint not null,
  expiry bigint not null,
  ttl bigint not null,
  weight bigint not null,
  weight_limit bigint not null,
  span integer not null,
  confirmed boolean not null,
  owner text collate "C" not null,
  client text collate "C" not null,
  meta text not null,
  primary key (namespace, key, token)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_cost_delay = 0);

-- The queue of a name.
create table if not exists holdfast.waiter (
  namespace text collate "C" not null,
  key text collate "C" not null,
  place bigint not null,
  since bigint not null,
  ttl bigint not null,
  offer bigint not null,
  weight bigint not null,
  weight_limit bigint not null,
  span integer not null,
  exclusive boolean not null,
  owner text collate "C" not null,
  client text collate "C" not null,
  meta text not null,
  primary key (namespace, key, place)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_cost_delay = 0);

-- The clients that have waiters at a name. Each row knows the place of the client's first waiter,
-- so an unresponsive client is passed over in one step, however many of its waiters come first.
create table if not exists holdfast.client (
  namespace text collate "C" not null,
  key text collate "C" not null,
  id text collate "C" not null,
  place bigint not null,
  heartbeat bigint not null,
  gone bigint not null,
  waiting integer not null,
  unresponsive boolean not null,
  -- The advisory lock of the connection by which the client spoke last (queue.sql); null where the
  -- client has no connection of its own.
  connection bigint,
  primary key (namespace, key, id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_cost_delay = 0);

-- Owners that have ended: their late requests are refused until then.
create table if not exists holdfast.tombstone (
  namespace text collate "C" not null,
  key text collate "C" not null,
  owner text collate "C" not null,
  until bigint not null,
  -- Null where the owner was released, and not revoked.
  reason text,
  primary key (namespace, key, owner)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_cost_delay = 0);

-- The indexes. "create index if not exists" locks its table although the index exists, and batches
-- lock the tables in another order. So it runs only where an index is missing, and then after the
-- lock that every batch takes first: no batch waits for this transaction while this one waits for
-- it.
do $$
begin
  if (select count(*) from pg_class c where c.relnamespace = 'holdfast'::regnamespace and c.relname
      in ('holder_owner', 'holder_expiry', 'holder_limit', 'holder_offer',
      'waiter_owner', 'waiter_client', 'client_place', 'client_gone', 'tombstone_end')) = 9 then
    return;
  end if;
  lock table holdfast.name in exclusive mode;
  create unique index if not exists holder_owner on holdfast.holder (namespace, key, owner);
  create index if not exists holder_expiry on holdfast.holder (namespace, key, expiry, token);
  create index if not exists holder_limit on holdfast.holder (namespace, key, weight_limit);
  create index if not exists holder_offer on holdfast.holder (namespace, key, client, token)
    where not confirmed;
  create unique index if not exists waiter_owner on holdfast.waiter (namespace, key, owner);
  create index if not exists waiter_client on holdfast.waiter (namespace, key, client, place);
  create index if not exists client_place on holdfast.client (namespace, key, place)
    where not unresponsive;
  create index if not exists client_gone on holdfast.client (namespace, key, gone);
  create index if not exists tombstone_end on holdfast.tombstone (namespace, key, until);
end $$;

-- The last token of all rows of holdfast.name that were removed: new rows start from it.
create table if not exists holdfast.namespace (
  name text collate "C" primary key,
  floor bigint not null check (floor between 0 and 9007199254740991)
);

-- One row: the version of these tables, and all that decides after a crash whether commits may have
-- been lost (run.sql).
create table if not exists holdfast.server (
  single boolean primary key default true check (single),
  version integer not null,
  system text not null,
  timeline text not null,
  -- No free name is granted before this time; 0: names are granted.
  grants_from bigint not null default 0,
  -- The week, counted from 1970, that these are noted for: the longest ttl, and whether
  -- durability was relaxed; then the same for the week before.
  week integer not null default 0,
  longest bigint not null default 60000000 check (longest between 0 and 86400000000),
  relaxed boolean not null default false,
  last_longest bigint not null default 60000000 check (last_longest between 0 and 86400000000),
  last_relaxed boolean not null default false
);

-- One row, lost with a crash or a promotion and kept by an orderly restart (run.sql).
create unlogged table if not exists holdfast.marker (
  single boolean primary key default true check (single),
  system text not null,
  timeline text not null,
  grants_from bigint not null,
  week integer not null,
  longest bigint not null,
  relaxed boolean not null
);
