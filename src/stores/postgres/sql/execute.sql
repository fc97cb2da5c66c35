-- The entry: runs the commands of a batch in order, at one instant, in one statement.
--
-- words: flags, the number n of commands, the n keys, and then the commands in runs. A run has one
--   operation and one set of terms: operation, number of commands, terms, and for each command its
--   subject (owner, client or token). No key is twice in a run.
--     a  acquire  client, mode (x or s), weight, limit, ttl, offer, touch, span, whether it may
--                 wait (1 or 0), not after, seen token, meta; owner
--     c  confirm  owner
--     n  renew    ttl, not after, seen token; owner
--     m  renew    the same and the heir; owner
--     r  release  end of the tombstone, length of the mark (empty: none), meta of the mark; owner
--     t  touch    client
--     i  inspect  (empty)
--     v  revoke   reason; token
--   flags: + makes the rows of names that have none; acquire, renew, and a release with a tombstone
--   need it. s says that no acknowledged commit is lost in a failover (synchronous replication).
-- returns: the time, a space, the run of the server; then a line for each reply.
--
-- One command on a name that has nothing but an exclusive holder is one UPDATE. Its time is read
-- before the row is locked. Where the UPDATE waits for another batch, it judges the new row, and
-- counts as having run at its earlier time: a lease only gets shorter by that. The limit "not
-- after" is the exception, because its sender may have given up meanwhile: it is judged by the
-- clock after the wait. The UPDATE judges a row again only if the other transaction changed it, so
-- the limit is judged once more at the end. All else goes through batch_1.
create or replace function holdfast.execute_1(space text, words text[]) returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '5s'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
  now_us constant bigint := holdfast.clock_1();
  op constant text := case words[2] when '1' then words[4] else '' end;
  -- The terms as numbers: a cast inside a statement is prepared anew in each call.
  new_ttl bigint;
  new_weight bigint;
  new_most bigint;
  new_span bigint;
  not_after bigint;
  seen bigint;
  granted_token bigint;
  waiters integer;
  durability text;
  reply text;
begin
  -- A warning is the only sign that the server gave up waiting for a synchronous standby. It comes
  -- with the commit, so this is set for the transaction and not for the function.
  if current_setting('client_min_messages') = 'error' then
    perform set_config('client_min_messages', 'warning', true);
  end if;
  if op = 'a' then
    new_ttl := words[10];
    if words[7] = 'x' and holdfast.is_noted_1(new_ttl, now_us) then
      new_weight := words[8]; new_most := words[9]; new_span := words[13];
      not_after := words[15]; seen := words[16];
      update holdfast.name o set
        last = holdfast.token_1(o.last, seen, now_us) + new_span - 1,
        token = holdfast.token_1(o.last, seen, now_us),
        granted = now_us, expiry = now_us + new_ttl, ttl = new_ttl,
        weight = new_weight, most = new_most, span = new_span,
        confirmed = true, owner = words[18], client = words[6], meta = words[17]
      where o.namespace = space and o.key = words[3] and holdfast.is_lone_1(o)
        and (o.owner is null or o.expiry <= now_us)
        and holdfast.is_fair_1(new_ttl, new_weight, new_most, new_span)
        and holdfast.may_count_on_1(o.last, seen, now_us)
        and not_after >= holdfast.clock_1()
      returning o.token into granted_token;
      if found then reply := 'G' || granted_token; end if;
    end if;
  elsif op = 'r' and words[6] = '0' and words[7] = '' then
    -- With waiters, this only locks the row.
    update holdfast.name o set
      owner = case when o.waiting > 0 then o.owner end,
      client = case when o.waiting > 0 then o.client end,
      meta = case when o.waiting > 0 then o.meta end
    where o.namespace = space and o.key = words[3] and holdfast.is_quiet_1(o, now_us)
      and o.owner = words[9] and o.expiry > now_us
    returning o.waiting into waiters;
    if waiters = 0 then
      durability := holdfast.forgo_disk_1();
      reply := 'R';
    elsif waiters > 0 then
      reply := holdfast.hand_off_1(space, words[3], waiters);
      if reply is not null then return reply; end if;
    end if;
  elsif op = 'n' then
    new_ttl := words[6];
    if holdfast.is_noted_1(new_ttl, now_us) then
      not_after := words[7]; seen := words[8];
      update holdfast.name o set
        last = holdfast.learned_1(o.last, seen, now_us),
        expiry = greatest(o.expiry, now_us + new_ttl), ttl = new_ttl,
        confirmed = true
      where o.namespace = space and o.key = words[3] and holdfast.is_quiet_1(o, now_us)
        and o.owner = words[9] and o.expiry > now_us
        and new_ttl <= 3153600000000000 and not_after >= holdfast.clock_1()
      returning holdfast.renewed_1(o.expiry - now_us, o.waiting, o.token, o.span) into reply;
    end if;
  elsif op = 'c' then
    update holdfast.name o set
      expiry = case when o.confirmed then o.expiry else greatest(o.expiry, now_us + o.ttl) end,
      confirmed = true
    where o.namespace = space and o.key = words[3] and holdfast.is_quiet_1(o, now_us)
      and o.owner = words[6] and o.expiry > now_us and holdfast.is_noted_1(o.ttl, now_us)
    returning holdfast.renewed_1(o.expiry - now_us, o.waiting, o.token, o.span) into reply;
  end if;
  if reply is null then return holdfast.batch_1(space, words); end if;
  if not_after < holdfast.clock_1() then
    raise 'the command waited for too long' using errcode = 'serialization_failure';
  end if;
  return now_us || holdfast.run_1() || reply;
end $$;
