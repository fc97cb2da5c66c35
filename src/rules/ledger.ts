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
import { cutOff, hasFairPatience, hasFairTerms, isDuration, LONGEST_US } from "./bounds.js";
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
import type { Holder, LedgerState, Waiter } from "./ledger-state.js";
import { isCredible, LAST_TOKEN, nextToken } from "./token.js";

/** A client that was silent for this many of its touch periods loses its places in the queue. */
const SILENT_PERIODS = 3;

/** Applies one command to the state of its name. Repeating a command changes nothing further. */
export function apply(state: LedgerState, command: Command, at: Instant, emit: Emit): Reply {
  expire(state, at);
  if ("client" in command) alive(state, command.client, at);
  serve(state, at, command.type === "touch" ? orByAnswer(emit, command.client) : emit);
  switch (command.type) {
    case "acquire":
      return acquire(state, command, at);
    case "confirm":
      return confirm(state, command.owner, at);
    case "renew":
      return renew(state, command, at);
    case "release":
      return release(state, command, at, emit);
    case "touch":
      return touch(state, command.client, at);
    case "inspect":
      return inspect(state, at);
    case "revoke":
      return revoke(state, command, at, emit);
  }
}

/** Whoever touches hears of its grants by the answer, also while no push can reach it. */
function orByAnswer(emit: Emit, client: string): Emit {
  return (push) => emit(push) || push.client === client;
}

function expire(state: LedgerState, at: Instant): void {
  for (let holder = state.expired(at.us); holder; holder = state.expired(at.us)) {
    state.dropHolder(holder);
    // Nobody confirmed the grant: the client is dead or hung, and so are its other waiters.
    if (!holder.confirmed) suspect(state, holder.client);
  }
  state.dropTombstones(at.us);
  state.dropMark(at.us);
  if (state.waiting() === 0) return;
  for (let client = state.silent(at.us); client; client = state.silent(at.us)) {
    state.dropClient(client);
  }
}

/**
 * Serves the queue from its head for as long as the head fits: nobody overtakes, nobody starves.
 */
function serve(state: LedgerState, at: Instant, emit: Emit): void {
  if (state.waiting() === 0) return;
  if (state.mark()) return endWaiters(state, emit);
  for (let waiter = state.head(); waiter; waiter = state.head()) {
    if (!fits(state.occupancy(), waiter)) return;
    const token = nextToken(state.lastToken(), at.wallUs);
    if (token > LAST_TOKEN) return;
    handOff(state, waiter, token, at, emit);
  }
}

/**
 * Gives the name to a waiter for the claim window; a waiter that cannot be reached is passed over.
 */
function handOff(state: LedgerState, waiter: Waiter, token: number, at: Instant, emit: Emit): void {
  const expiryUs = at.us + waiter.claimUs;
  const { client, owner, span } = waiter;
  const grant = { owner, token, span, grantedUs: at.us, expiryUs };
  if (!emit({ type: "granted", client, key: state.key, grant })) return suspect(state, client);
  state.dropWaiter(waiter);
  state.setLastToken(token + span - 1);
  state.putHolder({ ...waiter, token, expiryUs, grantedUs: at.us, confirmed: false });
}

/** What a mark says, every waiter may know: the work is done, there is nothing to wait for. */
function endWaiters(state: LedgerState, emit: Emit): void {
  const mark = state.mark();
  if (!mark) return;
  for (const waiter of [...state.waiters()]) {
    state.dropWaiter(waiter);
    const { client, owner } = waiter;
    emit({ type: "marked", client, key: state.key, owner, token: mark.token, meta: mark.meta });
  }
}

function acquire(state: LedgerState, command: Acquire, at: Instant): Reply {
  if (!hasFairTerms(command)) return refused("terms");
  if (at.us > command.notAfterUs) return { type: "stale", reason: "late" };
  const { owner } = command;
  if (state.tombstone(owner)) return { type: "stale", reason: "ended" };
  // A token below one that the client was granted before is worse than none.
  if (!learn(state, command.seenToken, at)) return refused("seen");
  const mine = state.holder(owner);
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
  if (state.waiter(owner)) {
    return { type: "queued", ahead: null, ...blockage(state, at) };
  }
  const token = nextToken(state.lastToken(), at.wallUs);
  if (token > LAST_TOKEN) return refused("tokens");
  if (!state.head() && fits(state.occupancy(), command)) return grant(state, command, token, at);
  if (!command.enqueue) return { type: "busy", ...blockage(state, at) };
  if (!hasFairPatience(command)) return refused("terms");
  const ahead = state.waiting();
  const { mode, weight, limit, ttlUs, claimUs, span, meta, client, touchUs } = command;
  state.enqueue(
    { owner, client, mode, weight, limit, ttlUs, claimUs, span, meta, sinceUs: at.us },
    { touchUs, goneUs: at.us + SILENT_PERIODS * touchUs },
  );
  return { type: "queued", ahead, ...blockage(state, at) };
}

function refused(reason: Refused["reason"]): Reply {
  return { type: "refused", reason };
}

/** Counts on from a token that a client has seen; false where that is beyond reason. */
function learn(state: LedgerState, seenToken: number, at: Instant): boolean {
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
  const holder = state.holder(owner);
  if (!holder) return gone(state, owner);
  confirmHolder(state, holder, at);
  return renewed(state, holder, at);
}

/** The first word of a waiter about its grant turns the claim window into the full lease, once. */
function confirmHolder(state: LedgerState, holder: Holder, at: Instant): void {
  if (holder.confirmed) return;
  holder.confirmed = true;
  holder.expiryUs = Math.max(holder.expiryUs, at.us + holder.ttlUs);
  state.updateHolder(holder);
}

function renew(state: LedgerState, command: Renew, at: Instant): Reply {
  if (!isDuration(command.ttlUs, LONGEST_US)) return refused("terms");
  if (at.us > command.notAfterUs) return { type: "stale", reason: "late" };
  // A renewal gives no token, so it need not fail for one that is not believed.
  learn(state, command.seenToken, at);
  const holder = state.holder(command.owner);
  if (!holder) return gone(state, command.owner);
  holder.confirmed = true;
  holder.ttlUs = command.ttlUs;
  holder.expiryUs = Math.max(holder.expiryUs, at.us + command.ttlUs);
  state.updateHolder(holder);
  return renewed(state, holder, at);
}

function renewed(state: LedgerState, holder: Holder, at: Instant): Reply {
  const { token, span } = holder;
  const waiting = state.waiting() > 0;
  return { type: "renewed", remainingUs: holder.expiryUs - at.us, waiting, token, span };
}

function gone(state: LedgerState, owner: string): Reply {
  const reason = state.tombstone(owner)?.reason ?? null;
  if (reason !== null) return { type: "gone", reason: "revoked", detail: reason };
  return { type: "gone", reason: state.occupancy().exclusive ? "replaced" : "missing", detail: "" };
}

function release(state: LedgerState, command: Release, at: Instant, emit: Emit): Reply {
  const { owner, keep } = command;
  const tombstoneUs = Math.min(command.tombstoneUs, at.us + LONGEST_US);
  if (tombstoneUs > at.us) bury(state, owner, tombstoneUs);
  const holder = state.holder(owner);
  const waiter = holder ? undefined : state.waiter(owner);
  if (waiter) state.dropWaiter(waiter);
  if (holder) {
    state.dropHolder(holder);
    if (keep) {
      const untilUs = at.us + cutOff(keep.ttlUs);
      state.putMark({ token: holder.token, untilUs, meta: keep.meta });
    }
  }
  if (holder || waiter) serve(state, at, emit);
  const next = state.nextToExpire();
  const claimUs = next && !next.confirmed ? next.expiryUs - at.us : 0;
  return { type: "released", held: holder !== undefined, claimUs };
}

/**
 * Nothing that is still under way for this owner may act until then. A revocation keeps its reason.
 */
function bury(state: LedgerState, owner: string, untilUs: number, reason?: string): void {
  const before = state.tombstone(owner);
  state.putTombstone({
    owner,
    untilUs: Math.max(untilUs, before?.untilUs ?? 0),
    reason: reason ?? before?.reason ?? null,
  });
}

function touch(state: LedgerState, client: string, at: Instant): Reply {
  const grants = [];
  for (const { owner, token, span, grantedUs, expiryUs } of state.claims(client)) {
    grants.push({ owner, token, span, grantedUs, expiryUs });
  }
  const waiting = state.client(client)?.waiting ?? 0;
  return { type: "touched", grants, waiting, ...blockage(state, at) };
}

function revoke(state: LedgerState, command: Revoke, at: Instant, emit: Emit): Reply {
  const mark = state.mark();
  if (mark?.token === command.token) {
    state.dropMark(Number.POSITIVE_INFINITY);
    return { type: "revoked", done: true };
  }
  for (const holder of state.holders()) {
    const { owner, client, token, span } = holder;
    if (!(command.token >= token && command.token < token + span)) continue;
    state.dropHolder(holder);
    bury(state, owner, holder.expiryUs, command.reason);
    emit({ type: "revoked", client, key: state.key, owner, token, reason: command.reason });
    serve(state, at, emit);
    return { type: "revoked", done: true };
  }
  return { type: "revoked", done: false };
}

function inspect(state: LedgerState, at: Instant): Reply {
  const holders = [];
  for (const holder of state.holders()) holders.push(viewOf(holder, at));
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

/** Any word of a client about a name: its waiters are served again, and its silence starts anew. */
function alive(state: LedgerState, id: string, at: Instant): void {
  const client = state.client(id);
  if (!client) return;
  client.suspect = false;
  client.goneUs = at.us + SILENT_PERIODS * client.touchUs;
  state.updateClient(client);
}

function suspect(state: LedgerState, id: string): void {
  const client = state.client(id);
  if (!client || client.suspect) return;
  client.suspect = true;
  state.updateClient(client);
}

/** Who is in the way, and when the next of them may be gone without a word. */
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
