/**
 * Upkeep: what every command of the ledger does before it acts. It drops what has expired and
 * serves the queue, in slices.
 *
 * Redis runs one script at a time for all its users, a process has one event loop, and a file has
 * one writer: a batch must not take as long as the work that piled up before it. So a command does
 * one step of each kind, and the commands of a batch share a slice for more. An expired holder that
 * is not dropped yet still counts in the occupancy, so it can only block; its own owner, `revoke`
 * and `inspect` treat it as gone. A reply that says `more`, or a due time in the past, asks its
 * client to come back at once, and every waiter comes back within its heartbeat period: so the work
 * goes on until it is done.
 */
import { fits } from "./fits.js";
import type { Emit, Instant } from "./ledger-command.js";
import type { Holder, LedgerState, Mark, Waiter } from "./ledger-state.js";
import { LAST_TOKEN, nextToken } from "./token.js";

/**
 * How many steps one batch may do beyond the first of each command. A step drops an expired holder,
 * serves a waiter or ends its wait.
 */
const SLICE = 64;

/** A client that was silent for this many heartbeat periods loses its places in the queue. */
export const SILENT_PERIODS = 3;

/** The bound on the work of one batch. */
export class Upkeep {
  /** How many grants the reply to a heartbeat may tell, too. */
  readonly slice: number;
  #left: number;
  /** Whether the command at hand had to leave work to the next one. */
  isBehind = false;

  constructor(slice: number = SLICE) {
    this.slice = slice;
    this.#left = slice;
  }

  /** Call it before the commands of a batch: they share one slice. */
  startBatch(): void {
    this.#left = this.slice;
  }

  /** Called by `apply` before each command. */
  startCommand(): void {
    this.isBehind = false;
  }

  /** Whether a loop that has `done` so many steps may do another; the first is always allowed. */
  allows(done: number): boolean {
    if (done === 0) return true;
    if (this.#left > 0) {
      this.#left -= 1;
      return true;
    }
    this.isBehind = true;
    return false;
  }
}

export function expire(state: LedgerState, at: Instant, upkeep: Upkeep): void {
  let holder = state.expired(at.us);
  for (let done = 0; holder && upkeep.allows(done); done += 1) {
    lapse(state, holder);
    holder = state.expired(at.us);
  }
  // rule: tombstones-end
  state.dropTombstones(at.us);
  state.dropMark(at.us);
  if (state.waiting() === 0) return;
  // Which of them go first is up to the store.
  let client = state.silent(at.us);
  for (let done = 0; client && done < SLICE; done += 1) {
    // rule: silent-clients-lose-their-places
    state.dropClient(client);
    client = state.silent(at.us);
  }
}

function lapse(state: LedgerState, holder: Holder): void {
  state.dropHolder(holder);
  // The client did not confirm the grant: it is dead or hung, and so are its other waiters.
  // rule: lapsed-offer-makes-client-unresponsive
  if (!holder.confirmed && !hasSpokenSince(state, holder)) markUnresponsive(state, holder.client);
}

/** Where work has piled up, the client may have spoken between the end of its grant and now. */
function hasSpokenSince(state: LedgerState, { client: id, expiryUs }: Holder): boolean {
  const client = state.client(id);
  return client !== undefined && client.goneUs - SILENT_PERIODS * client.heartbeatUs >= expiryUs;
}

/**
 * The holder of an owner. One that has expired goes at once, however many are still to be dropped
 * before it.
 */
export function holderOf(state: LedgerState, owner: string, at: Instant): Holder | undefined {
  const holder = state.holder(owner);
  if (!holder || holder.expiryUs > at.us) return holder;
  lapse(state, holder);
  return undefined;
}

/**
 * Serves the queue from its head for as long as the head fits: no waiter overtakes, none starves.
 * With a mark, every waiter is told instead that the work is done.
 */
export function serve(state: LedgerState, at: Instant, emit: Emit, upkeep: Upkeep): void {
  if (state.waiting() === 0) return;
  // rule: mark-ends-every-wait
  const mark = state.mark();
  for (let done = 0; ; done += 1) {
    const waiter = state.head();
    if (!waiter || !(mark || fits(state.occupancy(), waiter))) return;
    const token = mark ? mark.token : nextToken(state.lastToken(), at.wallUs);
    if (token > LAST_TOKEN || !upkeep.allows(done)) return;
    if (mark) endWait(state, waiter, mark, emit);
    else handOff(state, waiter, token, at, emit);
  }
}

/**
 * Gives the name to a waiter for the offer window; a waiter that cannot be reached is passed over.
 */
function handOff(state: LedgerState, waiter: Waiter, token: number, at: Instant, emit: Emit): void {
  const expiryUs = at.us + waiter.offerUs;
  const { client, owner, span } = waiter;
  const grant = { owner, token, span, grantedUs: at.us, expiryUs };
  if (!emit({ type: "granted", client, key: state.key, grant })) {
    // rule: unreachable-waiters-are-passed-over
    return markUnresponsive(state, client);
  }
  state.dropWaiter(waiter);
  // rule: handoff-uses-up-its-span
  state.setLastToken(token + span - 1);
  state.putHolder({ ...waiter, token, expiryUs, grantedUs: at.us, confirmed: false });
}

function endWait(state: LedgerState, waiter: Waiter, mark: Mark, emit: Emit): void {
  state.dropWaiter(waiter);
  const { client, owner } = waiter;
  emit({ type: "marked", client, key: state.key, owner, token: mark.token, meta: mark.meta });
}

function markUnresponsive(state: LedgerState, id: string): void {
  const client = state.client(id);
  if (!client || client.unresponsive) return;
  client.unresponsive = true;
  state.updateClient(client);
}
