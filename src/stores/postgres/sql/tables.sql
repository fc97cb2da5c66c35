-- The tables of the ledger. A name has one row, which stays and keeps the last token of the name.
-- The common case needs nothing else: the one exclusive holder is in that row. The counts in the
-- row say whether the other tables have rows of the name; otherwise they are not read.
--
-- Times are microseconds of the server's clock. There are no checks: each costs as much as half an
-- UPDATE. A row with numbers that no client wrote fails the commands on its own name only
-- (batch.sql), and the client refuses to read what is no whole number below 2^53.
create schema if not exists holdfast;

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
  buried bigint not null default 0,
  -- The exclusive holder; the owner is null where there is none.
  token bigint not null default 0,
  granted bigint not null default 0,
  expiry bigint not null default 0,
  ttl bigint not null default 0,
  weight bigint not null default 1,
  most bigint not null default 9007199254740991,
  span integer not null default 1,
  confirmed boolean not null default true,
  owner text collate "C",
  client text collate "C",
  meta text,
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
  most bigint not null,
  span integer not null,
  confirmed boolean not null,
  owner text collate "C" not null,
  client text collate "C" not null,
  meta text not null,
  primary key (namespace, key, token)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_cost_delay = 0);
create unique index if not exists holder_owner on holdfast.holder (namespace, key, owner);
create index if not exists holder_expiry on holdfast.holder (namespace, key, expiry, token);
create index if not exists holder_most on holdfast.holder (namespace, key, most);
create index if not exists holder_offer on holdfast.holder (namespace, key, client, token)
  where not confirmed;

-- The queue of a name.
create table if not exists holdfast.waiter (
  namespace text collate "C" not null,
  key text collate "C" not null,
  place bigint not null,
  since bigint not null,
  ttl bigint not null,
  offer bigint not null,
  weight bigint not null,
  most bigint not null,
  span integer not null,
  exclusive boolean not null,
  owner text collate "C" not null,
  client text collate "C" not null,
  meta text not null,
  primary key (namespace, key, place)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_cost_delay = 0);
create unique index if not exists waiter_owner on holdfast.waiter (namespace, key, owner);
create index if not exists waiter_client on holdfast.waiter (namespace, key, client, place);

-- The clients that have waiters at a name. Each row knows the place of the client's first waiter,
-- so a suspect client is passed over in one step, however many of its waiters come first.
create table if not exists holdfast.client (
  namespace text collate "C" not null,
  key text collate "C" not null,
  id text collate "C" not null,
  place bigint not null,
  touch bigint not null,
  gone bigint not null,
  waiting integer not null,
  suspect boolean not null,
  primary key (namespace, key, id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_cost_delay = 0);
create index if not exists client_place on holdfast.client (namespace, key, place)
  where not suspect;
create index if not exists client_gone on holdfast.client (namespace, key, gone);

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
create index if not exists tombstone_end on holdfast.tombstone (namespace, key, until);

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
  relaxed boolean not null default false,
  -- No free name is granted before this time.
  grants_from bigint not null default 0,
  longest bigint not null default 60000000 check (longest between 0 and 86400000000)
);

-- One row, lost with a crash or a promotion and kept by an orderly restart (run.sql).
create unlogged table if not exists holdfast.marker (
  single boolean primary key default true check (single),
  system text not null,
  timeline text not null,
  grants_from bigint not null,
  relaxed boolean not null,
  longest bigint not null
);
