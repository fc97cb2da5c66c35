-- The fence: a call in the user's own transaction that refuses a stale token.
--
-- Two fenced transactions of one name serialise on its row in fence_token: the second call waits
-- until the first transaction has ended. If that one committed a higher token, the second call
-- raises LF001; in repeatable read and serializable the row has changed since the snapshot, so
-- that Postgres raises 40001. The row is rolled back with its transaction: a token counts only if
-- the writes behind it do. The rows of the ledger are neither read nor locked, so that a long
-- fenced transaction delays no renewal.

create table if not exists holdfast.fence_token (
  namespace text collate "C" not null,
  name text collate "C" not null,
  -- The highest token of all transactions that committed.
  token bigint not null,
  used_at timestamptz not null,
  -- No call has found this row yet: the row is compared with the floor.
  is_new boolean not null,
  constraint fence_token_key primary key (namespace, name)
) with (
  fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000
);

-- The highest token of all rows that the sweeper removed. A name without a row counts as one that
-- was used with this token. The tokens of one namespace may come from several stores, so the floor
-- is made of tokens that are times, and compared with no others. The sweeper leaves rows with other
-- tokens, and rows whose token is not older than fence_age: no grant of today is below the floor.
create table if not exists holdfast.fence_floor (
  namespace text collate "C" not null,
  token bigint not null,
  constraint fence_floor_key primary key (namespace)
);

-- The sweeper removes a row that was not used for so long.
create or replace function holdfast.fence_age() returns interval
language sql immutable as $$ select interval '30 days' $$;

-- Whether a token is a time in microseconds, of the year 2001 or later. Stores that count, such as
-- etcd and ZooKeeper, have lower tokens.
create or replace function holdfast.is_time(token bigint) returns boolean
language sql immutable as $$ select token >= 1000000000000000 $$;

-- Returns the token; raises LF001 where a higher token was used.
--
-- Why a removed row is not missed: the sweeper raises the floor in the transaction that removes the
-- row, and a call that inserts a row looks afterwards, in a statement of its own.
-- Read committed: the insert has waited for the sweeper, and the later statement sees its floor.
-- An older snapshot sees the floor if the row was removed before the snapshot; it sees the row
-- itself if the row was used before and removed after; and if the row was used after the snapshot,
-- the transaction is older than fence_age, and is refused.
create or replace function holdfast.fence(name text, token bigint, namespace text default '')
returns bigint language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $$
declare
  inserted boolean;
  highest bigint;
begin
  -- Declared as `strict`, the function would let a null pass.
  if fence.name is null or fence.token is null or fence.namespace is null then
    raise exception using errcode = 'null_value_not_allowed',
      message = 'holdfast.fence needs a name, a token and a namespace that are not null.';
  end if;
  insert into holdfast.fence_token as kept (namespace, name, token, used_at, is_new)
    values (fence.namespace, fence.name, fence.token, clock_timestamp(), true)
    on conflict on constraint fence_token_key
      do update set token = excluded.token, used_at = excluded.used_at, is_new = false
      where kept.token <= excluded.token
    returning kept.is_new into inserted;
  if not inserted then return fence.token; end if;
  if inserted and transaction_timestamp() + holdfast.fence_age() <= clock_timestamp()
    and current_setting('transaction_isolation') <> 'read committed' then
    raise exception using errcode = 'serialization_failure',
      message = 'This transaction is too old for holdfast.fence. Begin it again.';
  end if;
  select max(seen.token) into highest from (
    select kept.token from holdfast.fence_token kept
      where kept.namespace = fence.namespace and kept.name = fence.name
    union all
    select floors.token from holdfast.fence_floor floors
      where floors.namespace = fence.namespace and holdfast.is_time(fence.token)
  ) seen;
  if inserted and highest = fence.token then return fence.token; end if;
  raise exception using errcode = 'LF001',
    message = format('The token %s for %L is stale: the token %s was used.',
      fence.token, fence.name, highest),
    hint = 'A newer holder of the lock has written. Roll back, and give up this work.';
end $$;
