-- Batches. Missing rows are made in the order of their keys before any row is locked, and rows are
-- locked in that order, so two batches never wait for each other in a cycle. The clock is read
-- after all rows are locked. A row that was removed between the two steps fails the batch with
-- 40001: nothing of it was applied.

-- Makes the rows of the names that have none, from the floor of the namespace. The floor is read
-- by a statement after the insert: it then has the tokens of rows that were removed before. In
-- other isolation levels that statement would not see them.
create or replace function holdfast.make_rows_1(space text, keys text[]) returns void
language plpgsql as $$
declare
  missing text[];
  start bigint;
begin
  missing := array(
    select distinct k collate "C" from unnest(keys) k
      where not exists (select from holdfast.name o where o.namespace = space and o.key = k)
      order by 1);
  if missing = '{}' then return; end if;
  if current_setting('transaction_isolation') <> 'read committed' then
    raise 'holdfast needs the isolation level "read committed"'
      using errcode = 'LF002', hint = 'Set default_transaction_isolation for this connection.';
  end if;
  insert into holdfast.name (namespace, key) select space, k from unnest(missing) k
    on conflict do nothing;
  select s.floor into start from holdfast.namespace s where s.name = space;
  if start > 0 then
    update holdfast.name o set last = start
      where o.namespace = space and o.key = any (missing) and o.last < start;
  end if;
end $$;

-- The short paths for a run: changes all names that have nothing but an exclusive holder in one
-- UPDATE, in the order of their keys. Where another kind of name is in the run, its reply is null.
-- The rows are found one by one: as a join of two tables, a plan could read the whole namespace.
create or replace function holdfast.lone_run_1(space text, op text, terms text[], keys text[],
  subjects text[], now_us bigint) returns text[] language plpgsql as $$
declare
  replies text[] := array_fill(null::text, array[cardinality(keys)]);
  x record;
begin
  if op = 'a' then
    if terms[2] <> 'x' or not holdfast.is_noted_1(terms[5]::bigint, now_us)
      or not holdfast.is_fair_1(
        terms[5]::bigint, terms[3]::bigint, terms[4]::bigint, terms[8]::bigint) then
      return replies;
    end if;
    for x in
      update holdfast.name o set
        last = holdfast.token_1(o.last, terms[11]::bigint, now_us) + terms[8]::bigint - 1,
        token = holdfast.token_1(o.last, terms[11]::bigint, now_us),
        granted = now_us, expiry = now_us + terms[5]::bigint, ttl = terms[5]::bigint,
        weight = terms[3]::bigint, most = terms[4]::bigint, span = terms[8]::bigint,
        confirmed = true, owner = u.subject, client = terms[1], meta = terms[12]
      from (select v.subject, v.nth, (select p.ctid from holdfast.name p
            where p.namespace = space and p.key = v.key) as row_id
          from unnest(keys, subjects) with ordinality as v (key, subject, nth)
          order by v.key collate "C") u
      where o.ctid = u.row_id and holdfast.is_lone_1(o)
        and (o.owner is null or o.expiry <= now_us)
        and holdfast.may_count_on_1(o.last, terms[11]::bigint, now_us)
        and terms[10]::bigint >= holdfast.clock_1()
      returning u.nth, o.token
    loop
      replies[x.nth] := 'G' || x.token;
    end loop;
  elsif op = 'r' and terms[1] = '0' and terms[2] = '' then
    for x in
      update holdfast.name o set owner = null, client = null, meta = null
      from (select v.subject, v.nth, (select p.ctid from holdfast.name p
            where p.namespace = space and p.key = v.key) as row_id
          from unnest(keys, subjects) with ordinality as v (key, subject, nth)
          order by v.key collate "C") u
      where o.ctid = u.row_id and holdfast.is_lone_1(o)
        and o.owner = u.subject and o.expiry > now_us
      returning u.nth
    loop
      replies[x.nth] := 'R';
    end loop;
  elsif op = 'n' and terms[1]::bigint <= 3153600000000000
    and holdfast.is_noted_1(terms[1]::bigint, now_us) then
    for x in
      update holdfast.name o set
        last = holdfast.learned_1(o.last, terms[3]::bigint, now_us),
        expiry = greatest(o.expiry, now_us + terms[1]::bigint), ttl = terms[1]::bigint,
        confirmed = true
      from (select v.subject, v.nth, (select p.ctid from holdfast.name p
            where p.namespace = space and p.key = v.key) as row_id
          from unnest(keys, subjects) with ordinality as v (key, subject, nth)
          order by v.key collate "C") u
      where o.ctid = u.row_id and holdfast.is_quiet_1(o, now_us)
        and o.owner = u.subject and o.expiry > now_us and terms[2]::bigint >= holdfast.clock_1()
      returning u.nth, holdfast.renewed_1(o.expiry - now_us, o.waiting, o.token, o.span) as reply
    loop
      replies[x.nth] := x.reply;
    end loop;
  end if;
  return replies;
end $$;

create or replace function holdfast.terms_1(op text) returns integer
language sql immutable as $$
  select case op when 'a' then 12 when 'n' then 3 when 'm' then 4 when 'r' then 3 when 'v' then 1
    else 0 end
$$;

-- Locks the rows of the names. Returns the keys, with null for those that have no row: a row that
-- is made after this is not locked, so to this batch its name has none. A row lock is written to
-- the log. So a commit that only tells a grant again waits for the disk and for standbys, and with
-- it the commit of that grant, which may have given up waiting.
create or replace function holdfast.lock_rows_1(space text, keys text[], makes_rows boolean)
returns text[] language plpgsql as $$
declare
  locked text[];
begin
  -- One name can be locked before it is known to have a row: nothing else is locked then.
  if makes_rows and cardinality(keys) > 1 then perform holdfast.make_rows_1(space, keys); end if;
  for attempt in 1 .. 2 loop
    select array_agg(l.key) into locked from (
      select o.key from holdfast.name o where o.namespace = space and o.key = any (keys)
        order by o.key for update) l;
    if cardinality(locked) = cardinality(keys) then return keys; end if;
    exit when not makes_rows or cardinality(keys) > 1;
    perform holdfast.make_rows_1(space, keys);
  end loop;
  keys := array(select case when v.key = any (locked) then v.key end
    from unnest(keys) with ordinality as v (key, nth) order by v.nth);
  if makes_rows and array_position(keys, null) is not null then
    raise 'a name was removed meanwhile' using errcode = 'serialization_failure';
  end if;
  return keys;
end $$;

-- Applies a command of a batch in which damaged rows failed a command: only that command fails.
create or replace function holdfast.apply_alone_1(
  space text, name_key text, op text, words text[], subject text, now_us bigint,
  grants_from bigint, slice_size integer, inout slice integer, out reply text
) language plpgsql as $$
declare
  x record;
begin
  x := holdfast.apply_1(
    space, name_key, op, words, subject, now_us, grants_from, slice_size, slice);
  slice := x.slice;
  reply := x.reply;
exception when data_exception or integrity_constraint_violation then
  reply := '!' || to_json(sqlerrm);
end $$;

-- The commands of a batch whose rows are locked, in runs from the word `head` on. The keys are null
-- for names without a row.
create or replace function holdfast.runs_1(space text, words text[], head integer, keys text[],
  now_us bigint, is_careful boolean) returns text language plpgsql as $$
declare
  slice_size constant integer := 64;
  slice integer := slice_size;
  flags constant text := words[1];
  n constant integer := words[2];
  done integer := 0;
  op text;
  size integer;
  grants_from bigint := 0;
  ttl bigint;
  terms text[];
  replies text[] := '{}';
  run_keys text[];
  run_replies text[];
  x record;
begin
  while done < n loop
    op := words[head];
    size := words[head + 1];
    terms := words[head + 2 : head + 1 + holdfast.terms_1(op)];
    head := head + 2 + holdfast.terms_1(op);
    run_keys := keys[done + 1 : done + size];
    ttl := case op when 'a' then terms[5]::bigint when 'n' then terms[1]::bigint
      when 'm' then terms[1]::bigint else 0 end;
    if not holdfast.is_noted_1(ttl, now_us) then
      grants_from := holdfast.note_1(ttl, now_us);
    end if;
    if flags like '%s' then grants_from := 0; end if;
    run_replies := case when n > 1 then holdfast.lone_run_1(
      space, op, terms, run_keys, words[head : head + size - 1], now_us) end;
    for nth in 1 .. size loop
      if run_replies[nth] is null then
        if is_careful then
          x := holdfast.apply_alone_1(space, run_keys[nth], op, terms, words[head + nth - 1],
            now_us, grants_from, slice_size, slice);
        else
          x := holdfast.apply_1(space, run_keys[nth], op, terms, words[head + nth - 1],
            now_us, grants_from, slice_size, slice);
        end if;
        slice := x.slice;
        run_replies[nth] := x.reply;
      end if;
    end loop;
    replies := replies || run_replies;
    head := head + size;
    done := done + size;
  end loop;
  return now_us || holdfast.run_1() || array_to_string(replies, chr(10));
end $$;

create or replace function holdfast.batch_1(space text, words text[]) returns text
language plpgsql as $$
declare
  n constant integer := words[2];
  head constant integer := n + 3;
  op constant text := words[head];
  subjects constant integer := head + 2 + holdfast.terms_1(op);
  keys text[] := words[3 : n + 2];
  replies text[];
  is_late boolean;
  now_us bigint;
begin
  -- Most batches are one run of names that have nothing but an exclusive holder. Otherwise the
  -- changes of this block are undone with their locks, so that all rows can be locked in order.
  if n > 1 and words[head + 1] = words[2] and op in ('a', 'n', 'r') then
    begin
      now_us := holdfast.clock_1();
      replies := holdfast.lone_run_1(space, op, words[head + 2 : subjects - 1], keys,
        words[subjects : subjects + n - 1], now_us);
      -- The limit "not after", which lone_run_1 has judged before it waited for the last row.
      is_late := holdfast.clock_1()
        > words[head + case op when 'a' then 11 when 'n' then 3 end]::bigint;
      if array_position(replies, null) is null and is_late is not true then
        return now_us || holdfast.run_1() || array_to_string(replies, chr(10));
      end if;
      raise 'not only such names' using errcode = 'LF000';
    exception when sqlstate 'LF000' then
    end;
  end if;

  keys := holdfast.lock_rows_1(space, keys, words[1] like '+%');
  now_us := holdfast.clock_1();
  begin
    return holdfast.runs_1(space, words, head, keys, now_us, false);
  exception when data_exception or integrity_constraint_violation then
    return holdfast.runs_1(space, words, head, keys, now_us, true);
  end;
end $$;
