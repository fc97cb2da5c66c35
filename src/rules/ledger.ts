/**
 * The ledger: what every command does to the state of one name at one instant of the store's time.
 * It is the specification of the arbiter family: memory and file run this code, Redis and Postgres
 * carry the same rules natively and are compared with it command by command.
 *
 * Why no two incompatible owners hold a name: the holders only change here, one command at a time;
 * a grant is made only where `fits` allows it; a holder leaves by its own release, by a revoke, or
 * when the store's time has reached its expiry, which its client's deadline always precedes. Why
 * nothing late does harm: a command carries `notAfterUs` and is refused beyond it; an owner that
 * ended with a command possibly still under way leaves a tombstone for as long as that one could
 * act.
 */
import { areTermsValid, cutOff, isDuration, isPatienceValid, MAX_DURATION_US } from "./bounds.js";
import { fits } from "./fits.js";
import type {
  Acquire,
  Command,
  Emit,
  HolderEntry,
  Instant,
  Refused,
  Release,
  Renew,
  Reply,
  Revoke,
} from "./ledger-command.js";
import type { Holder, LedgerState } from "./ledger-state.js";
import { isCredible, LAST_TOKEN, nextToken } from "./token.js";
import { expire, holderOf, SILENT_PERIODS, serve, Upkeep } from "./upkeep.js";

/**
 * Applies one command to the state of its name. Repeating a command changes nothing further, but
 * for piled-up work, of which it does another slice. The commands of one batch share an upkeep.
 */
export function apply(
  state: LedgerState,
  command: Command,
  at: Instant,
  emit: Emit,
  upkeep: Upkeep = new Upkeep(),
): Reply {
  upkeep.startCommand();
  expire(state, at, upkeep);
  if ("client" in command) alive(state, command.client, at);
  serve(state, at, command.type === "heartbeat" ? orByAnswer(emit, command.client) : emit, upkeep);
  switch (command.type) {
    case "acquire":
      return acquire(state, command, at);
    case "confirm":
      return confirm(state, command.owner, at);
    case "renew":
      return renew(state, command, at);
    case "release":
      return release(state, command, at, emit, upkeep);
    case "heartbeat":
      return heartbeat(state, command.client, at, upkeep);
    case "inspect":
      return inspect(state, at);
    case "revoke":
      return revoke(state, command, at, emit, upkeep);
  }
}

/** The reply to a heartbeat tells the client of its grants, even while no push reaches it. */
function orByAnswer(emit: Emit, client: string): Emit {
  return (push) => emit(push) || push.client === client;
}

function acquire(state: LedgerState, command: Acquire, at: Instant): Reply {
  if (!areTermsValid(command)) return refused("terms");
  // rule: late-acquire-is-refused
  if (at.us > command.notAfterUs) return { type: "stale", reason: "late" };
  const { owner } = command;
  if (state.tombstone(owner, at.us)) return { type: "stale", reason: "ended" };
  // A token below one that the client was granted before is worse than none.
  // rule: seen-tokens-count
  if (!learn(state, command.seenToken, at)) return refused("seen");
  const mine = holderOf(state, owner, at);
  if (mine) {
    confirmHolder(state, mine, at);
    const { token, span } = mine;
    return { type: "granted", token, span, remainingUs: mine.expiryUs - at.us };
  }
  const mark = state.mark();
  if (mark) {
    const remainingUs = mark.untilUs - at.us;
    return { type: "marked", token: mark.token, meta: mark.meta, remainingUs };
  }
  // rule: repeated-request-keeps-the-place
  if (state.waiter(owner)) {
    return { type: "queued", ahead: null, ...blockage(state, at) };
  }
  const token = nextToken(state.lastToken(), at.wallUs);
  if (token > LAST_TOKEN) return refused("tokens");
  // rule: newcomers-queue-behind
  if (!state.head() && fits(state.occupancy(), command)) return grant(state, command, token, at);
  if (!command.enqueue) return { type: "busy", ...blockage(state, at) };
  if (!isPatienceValid(command)) return refused("terms");
  const ahead = state.waiting();
  const { mode, weight, limit, ttlUs, offerUs, span, meta, client, heartbeatUs } = command;
  state.enqueue(
    { owner, client, mode, weight, limit, ttlUs, offerUs, span, meta, sinceUs: at.us },
    { heartbeatUs, goneUs: at.us + SILENT_PERIODS * heartbeatUs },
  );
  return { type: "queued", ahead, ...blockage(state, at) };
}

function refused(reason: Refused["reason"]): Reply {
  return { type: "refused", reason };
}

/** Counts on from a token that a client has seen; false where that is beyond reason. */
function learn(state: LedgerState, given: number, at: Instant): boolean {
  // Tokens travel as whole numbers.
  const seenToken = Math.floor(given);
  // Fences may have seen what the store gave out: it is counted on from, however high it is.
  if (seenToken <= state.lastToken()) return true;
  if (!isCredible(seenToken, at.wallUs)) return false;
  state.setLastToken(seenToken);
  return true;
}

function grant(state: LedgerState, command: Acquire, token: number, at: Instant): Reply {
  const { owner, client, mode, weight, limit, ttlUs, span, meta } = command;
  state.setLastToken(token + span - 1);
  state.putHolder({
    owner,
    client,
    mode,
    weight,
    limit,
    ttlUs,
    span,
    meta,
    token,
    expiryUs: at.us + ttlUs,
    grantedUs: at.us,
    confirmed: true,
  });
  return { type: "granted", token, span, remainingUs: ttlUs };
}

function confirm(state: LedgerState, owner: string, at: Instant): Reply {
  const holder = holderOf(state, owner, at);
  if (!holder) return gone(state, owner, at);
  confirmHolder(state, holder, at);
  return renewed(state, holder, at);
}

/** The first word of a waiter about its grant turns the offer window into the full lease, once. */
function confirmHolder(state: LedgerState, holder: Holder, at: Instant): void {
  if (holder.confirmed) return;
  holder.confirmed = true;
  // rule: confirm-gives-the-full-lease
  holder.expiryUs = Math.max(holder.expiryUs, at.us + holder.ttlUs);
  state.updateHolder(holder);
}

function renew(state: LedgerState, command: Renew, at: Instant): Reply {
  if (!isDuration(command.ttlUs, MAX_DURATION_US)) return refused("terms");
  if (at.us > command.notAfterUs) return { type: "stale", reason: "late" };
  // A renewal gives no token, so it need not fail for one that is not believed.
  learn(state, command.seenToken, at);
  const holder = holderOf(state, command.owner, at);
  // rule: renewal-never-revives
  if (!holder) return gone(state, command.owner, at);
  holder.confirmed = true;
  const { expiryUs } = holder;
  // rule: renewal-never-shortens
  holder.expiryUs = Math.max(holder.expiryUs, at.us + command.ttlUs);
  // A shorter renewal leaves the earlier promise, and with it the ttl of that promise.
  if (holder.expiryUs > expiryUs) holder.ttlUs = command.ttlUs;
  state.updateHolder(holder);
  // After the update: a holder that was not confirmed stands among those of its old client.
  if (command.resumedBy !== undefined) {
    holder.client = command.resumedBy;
    state.updateHolder(holder);
  }
  return renewed(state, holder, at);
}

function renewed(state: LedgerState, holder: Holder, at: Instant): Reply {
  const { token, span } = holder;
  const waiting = state.waiting() > 0;
  return { type: "renewed", remainingUs: holder.expiryUs - at.us, waiting, token, span };
}

function gone(state: LedgerState, owner: string, at: Instant): Reply {
  const reason = state.tombstone(owner, at.us)?.reason ?? null;
  if (reason !== null) return { type: "gone", reason: "revoked", detail: reason };
  return { type: "gone", reason: state.occupancy().exclusive ? "replaced" : "missing", detail: "" };
}

function release(
  state: LedgerState,
  command: Release,
  at: Instant,
  emit: Emit,
  upkeep: Upkeep,
): Reply {
  const { owner, keep } = command;
  const tombstoneUs = Math.min(command.tombstoneUs, at.us + MAX_DURATION_US);
  // rule: release-leaves-a-tombstone
  if (tombstoneUs > at.us) leaveTombstone(state, owner, tombstoneUs, at);
  const holder = holderOf(state, owner, at);
  const waiter = holder ? undefined : state.waiter(owner);
  // rule: release-ends-the-wait
  if (waiter) state.dropWaiter(waiter);
  if (holder) {
    state.dropHolder(holder);
    // rule: finished-once-leaves-a-mark
    if (keep) {
      const untilUs = at.us + cutOff(keep.ttlUs);
      state.putMark({ token: holder.token, untilUs, meta: keep.meta });
    }
  }
  // rule: release-serves-the-queue
  if (holder || waiter) serve(state, at, emit, upkeep);
  const next = state.nextToExpire();
  const offerUs = next && !next.confirmed ? Math.max(0, next.expiryUs - at.us) : 0;
  return { type: "released", held: holder !== undefined, offerUs, more: hasMore(state, upkeep) };
}

/** Whether this command left work that a waiter needs done. */
function hasMore(state: LedgerState, upkeep: Upkeep): boolean {
  return upkeep.isBehind && state.waiting() > 0;
}

/**
 * Nothing that is still under way for this owner may act until then. A revocation keeps its reason.
 */
function leaveTombstone(
  state: LedgerState,
  owner: string,
  untilUs: number,
  at: Instant,
  reason?: string,
): void {
  const before = state.tombstone(owner, at.us);
  state.putTombstone({
    owner,
    untilUs: Math.max(untilUs, before?.untilUs ?? 0),
    reason: reason ?? before?.reason ?? null,
  });
}

function heartbeat(state: LedgerState, client: string, at: Instant, upkeep: Upkeep): Reply {
  const offers = state.offers(client, upkeep.slice + 1);
  const grants = [];
  for (const { owner, token, span, grantedUs, expiryUs } of offers.slice(0, upkeep.slice)) {
    if (expiryUs > at.us) grants.push({ owner, token, span, grantedUs, expiryUs });
  }
  const waiting = state.client(client)?.waiting ?? 0;
  const more = offers.length > grants.length || hasMore(state, upkeep);
  return { type: "heartbeat", grants, waiting, more, ...blockage(state, at) };
}

function revoke(
  state: LedgerState,
  command: Revoke,
  at: Instant,
  emit: Emit,
  upkeep: Upkeep,
): Reply {
  const mark = state.mark();
  if (mark?.token === command.token) {
    state.dropMark(Number.POSITIVE_INFINITY);
    return { type: "revoked", done: true };
  }
  const holder = state.holderWith(command.token);
  if (!holder || holder.expiryUs <= at.us) return { type: "revoked", done: false };
  const { owner, client, token } = holder;
  state.dropHolder(holder);
  leaveTombstone(state, owner, holder.expiryUs, at, command.reason);
  emit({ type: "revoked", client, key: state.key, owner, token, reason: command.reason });
  serve(state, at, emit, upkeep);
  return { type: "revoked", done: true };
}

function inspect(state: LedgerState, at: Instant): Reply {
  const holders = [];
  for (const holder of state.holders()) {
    if (holder.expiryUs > at.us) holders.push(viewOf(holder, at));
  }
  const waiters = [];
  for (const { mode, weight, limit, meta, sinceUs } of state.waiters()) {
    waiters.push({ mode, weight, limit, meta, waitedUs: at.us - sinceUs });
  }
  const mark = state.mark();
  return {
    type: "view",
    holders,
    waiters,
    mark: mark ? { token: mark.token, meta: mark.meta, remainingUs: mark.untilUs - at.us } : null,
  };
}

/** Any command of a client about a name: its waiters are served again, its silence starts again. */
function alive(state: LedgerState, id: string, at: Instant): void {
  const client = state.client(id);
  if (!client) return;
  // rule: any-command-makes-client-responsive
  client.unresponsive = false;
  client.goneUs = at.us + SILENT_PERIODS * client.heartbeatUs;
  state.updateClient(client);
}

/** The holder that expires first, and the time until then. */
function blockage(state: LedgerState, at: Instant): { holder: HolderEntry | null; dueUs: number } {
  const next = state.nextToExpire();
  if (!next) return { holder: null, dueUs: 0 };
  return { holder: viewOf(next, at), dueUs: next.expiryUs - at.us };
}

function viewOf(holder: Holder, at: Instant): HolderEntry {
  const { token, span, mode, weight, limit, meta } = holder;
  return {
    token,
    span,
    mode,
    weight,
    limit,
    meta,
    heldUs: at.us - holder.grantedUs,
    remainingUs: holder.expiryUs - at.us,
  };
}
