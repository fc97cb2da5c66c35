-- The ledger (rules/ledger.ts): what a command does to the state of one name at one instant. The
-- batch has locked the row of the name. The short paths in execute.sql do the same for names that
-- have at most one exclusive holder.

-- One command. `words` are the terms of its run (execute.sql), `subject` its owner, client or
-- token.
-- `slice_size` is the slice of a whole batch, `slice` what is left of it.
create or replace function holdfast.apply_1(
  space text, name_key text, op text, words text[], subject text, now_us bigint,
  grants_from bigint, slice_size integer, inout slice integer, out reply text
) language plpgsql as $$
declare
  r holdfast.name;
  before holdfast.name;
  h holdfast.holder;
  behind boolean := false;
  is_found boolean;
  new_gone bigint;
  x record;
  speaker constant text := case op when 'a' then words[1] when 't' then subject end;
begin
  select * into before from holdfast.name n where n.namespace = space and n.key = name_key;
  is_found := found;
  r := before;
  if not is_found then
    r.namespace := space; r.key := name_key; r.last := 0; r.shared := 0; r.shared_weight := 0;
    r.waiting := 0; r.place := 0; r.silent := 0; r.buried := 0;
    before := r;
  end if;
  if r.owner is not null and r.expiry <= now_us or r.shared > 0 or r.buried > 0
    or r.mark_until <= now_us or r.waiting > 0 and r.silent <= now_us then
    x := holdfast.expire_1(r, now_us, slice);
    r := x.r; slice := x.slice; behind := x.behind;
  end if;
  if r.waiting > 0 then
    if speaker is not null then
      update holdfast.client c set
        suspect = false, gone = now_us + 3 * c.touch, connection = holdfast.connection_1()
        where c.namespace = space and c.key = name_key and c.id = speaker
        returning c.gone into new_gone;
      r.silent := least(r.silent, new_gone);
    end if;
    x := holdfast.serve_1(r, now_us, grants_from, slice, behind);
    r := x.r; slice := x.slice; behind := x.behind;
  end if;
  case op
    when 'a' then
      x := holdfast.acquire_1(r, words, subject, now_us, grants_from);
      r := x.r; reply := x.reply;
    when 'c' then
      x := holdfast.holder_of_1(r, subject, now_us);
      r := x.r;
      h := x.h;
      if h.owner is null then
        reply := holdfast.gone_1(r, subject, now_us);
      else
        r := holdfast.confirm_1(r, h, now_us);
        if not h.confirmed then h.expiry := greatest(h.expiry, now_us + h.ttl); end if;
        reply := holdfast.renewed_1(h.expiry - now_us, r.waiting, h.token, h.span);
      end if;
    when 'n', 'm' then
      x := holdfast.renew_1(r, words, subject, now_us);
      r := x.r; reply := x.reply;
    when 'r' then
      x := holdfast.release_1(r, words, subject, now_us, grants_from, slice, behind);
      r := x.r; slice := x.slice; reply := x.reply;
    when 't' then
      reply := holdfast.touch_1(r, subject, now_us, grants_from, slice_size, behind);
    when 'i' then
      reply := 'I' || holdfast.view_1(r, now_us)::text;
    when 'v' then
      x := holdfast.revoke_1(
        r, words[1], subject::bigint, now_us, grants_from, slice, behind);
      r := x.r; slice := x.slice; reply := x.reply;
  end case;
  if r is not distinct from before then return; end if;
  if not is_found then
    raise 'the batch changes a name that has no row' using errcode = 'serialization_failure';
  end if;
  update holdfast.name n set
    last = r.last, shared = r.shared, shared_weight = r.shared_weight, waiting = r.waiting,
    place = r.place, silent = r.silent, buried = r.buried, token = r.token, granted = r.granted,
    expiry = r.expiry, ttl = r.ttl, weight = r.weight, most = r.most, span = r.span,
    confirmed = r.confirmed, owner = r.owner, client = r.client, meta = r.meta,
    mark_until = r.mark_until, mark_token = r.mark_token, mark_meta = r.mark_meta
    where n.namespace = space and n.key = name_key;
end $$;
