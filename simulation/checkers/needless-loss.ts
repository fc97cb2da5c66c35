/**
 * Unknown is not lost: a lease ends before its deadline only for a reason that the store's account
 * shows, and where nothing goes wrong no lease that is renewed is lost at all. Nor does an
 * acquisition fail for a store that is there.
 *
 * Excused are:
 * - an early end by the store: the grant was revoked, the store forgot it, a node that had voted
 *   for it restarted, or the store's clock (of several nodes: that of a node that had voted for it)
 *   jumped ahead, for an end that is early by no more than the jump;
 * - a lease that expires while faults may keep its renewals from the store, up to the first word
 *   of the store about it when all is calm; or that its process could not renew because it was
 *   frozen when the deadline came;
 * - a release whose copy, which its client cannot know of, reached the store first;
 * - an acquisition that fails while the store may be out of reach, or because its process was
 *   frozen between a request and the answer.
 */
import { CALL_TIMEOUT_MS } from "../../src/families/ledger/command-batcher.js";
import type { Entry, EntryOf } from "../history.js";
import { Freezes } from "./freezes.js";
import { type Life, livesOf } from "./life.js";
import { lastWordMs, promisedMs, StoreAccount, wasRevoked } from "./store-account.js";
import type { Violation } from "./violation.js";

/** A renewal and its answer take this long, and timers are no more exact. */
const SLACK_MS = 3;
/** A process that wakes up fails at once where its time is over, or asks again. */
const AWAKE_MS = 10;
/** Sleep is known to 10 ms, and rounded up. */
const SLEEP_SLACK_MS = 30;

/** `renewalMs`: how long a renewal takes where the network has no faults. */
export function checkNeedlessLoss(
  entries: readonly Entry[],
  hasStrays: boolean,
  renewalMs: number = SLACK_MS,
): Violation[] {
  const account = new StoreAccount(entries);
  const freezes = new Freezes(entries);
  const calmMs = entries.find(({ type }) => type === "calm")?.atMs ?? Number.POSITIVE_INFINITY;
  return [...livesOf(entries).values()].flatMap((life) => {
    const { asked, held, lost, refused } = life;
    if (refused?.reason === "HF_STORE" && !isUnheard(asked, refused, calmMs, freezes)) {
      const message = `${asked.lease} failed although the store was there`;
      const { name, atMs } = asked;
      return [{ checker: "needless loss", message, name, fromMs: atMs, toMs: refused.atMs }];
    }
    if (!held || !lost) return [];
    if (hasStrays && wasReleasedTwice(life, account)) return [];
    if (isEndedByStore(life, lost, account)) return [];
    if (isDue(life, lost, account, freezes, { calmMs, renewalMs })) return [];
    const { name } = held;
    return [
      {
        checker: "needless loss",
        message: `${held.lease} was lost for no reason ("${lost.reason}")`,
        name,
        fromMs: held.atMs,
        toMs: lost.atMs,
      },
    ];
  });
}

/**
 * Whether a process may have heard nothing from the store: a call that was made before all was calm
 * ends by its own timeout; and a process that was frozen while it asked, until just now, had no
 * chance to read an answer before its time ended.
 */
function isUnheard(
  asked: EntryOf<"asked">,
  { atMs }: EntryOf<"refused">,
  calmMs: number,
  freezes: Freezes,
): boolean {
  if (asked.atMs < calmMs && atMs <= calmMs + CALL_TIMEOUT_MS) return true;
  // While it waits, a process that was frozen asks once more before it gives up.
  if (asked.waits && atMs < asked.atMs + asked.withinMs) return false;
  return freezes.wasFrozen(asked.process, Math.max(asked.atMs, atMs - AWAKE_MS), atMs);
}

/** The store executed a copy of the release before it executed the release itself. */
function wasReleasedTwice({ held, releasing, lost }: Life, account: StoreAccount): boolean {
  if (!held || !releasing || !lost) return false;
  return account.withdrawals(held, releasing.atMs, lost.atMs) > 1;
}

/** A lease is due at its deadline, or at its warning. */
function dueMsOf({ held, beliefs }: Life, { atMs, reason }: EntryOf<"lost">): number {
  const belief = beliefs.findLast((one) => one.atMs < atMs) ?? beliefs[0];
  const isWarning = reason === "expired" || reason === "max_hold";
  return (belief?.untilMs ?? 0) - (isWarning ? (held?.graceMs ?? 0) : 0);
}

function isDue(
  life: Life,
  lost: EntryOf<"lost">,
  account: StoreAccount,
  freezes: Freezes,
  { calmMs, renewalMs }: { readonly calmMs: number; readonly renewalMs: number },
): boolean {
  const { asked, held } = life;
  if (!held) return true;
  const { process } = held;
  const dueMs = dueMsOf(life, lost);
  const slept = freezes.sleptMs(process, held.atMs, lost.atMs) > 0;
  const leastMs = held.longestMs - held.graceMs - SLACK_MS;
  if (lost.reason === "max_hold" && lost.atMs < asked.atMs + leastMs) return false;
  if (lost.atMs < dueMs - (slept ? SLEEP_SLACK_MS : SLACK_MS)) return false;
  if (!held.renews || lost.reason === "max_hold") return true;
  // Before all was calm, a fault may have kept its renewals from the store.
  const wordMs = lastWordMs(account.grantOf(held), lost.atMs);
  if (held.atMs < calmMs && wordMs <= calmMs) return true;
  // A process that was frozen when the deadline passed, or a renewal before it, could not renew in
  // time; nor could one that was frozen until it was given the lease with hardly more than the
  // grace left.
  const isGivenLate = held.graceMs > 0 && held.atMs >= dueMs - SLACK_MS;
  return freezes.wasFrozen(process, isGivenLate ? asked.atMs : dueMs - renewalMs, dueMs);
}

/** The store ended the lease before its deadline. */
function isEndedByStore(life: Life, lost: EntryOf<"lost">, account: StoreAccount): boolean {
  const { held } = life;
  const { atMs, reason } = lost;
  const grant = held && account.grantOf(held);
  // A lease that ends by the clock of its process ends by nothing else.
  if (!grant || reason === "expired" || reason === "max_hold") return false;
  if (wasRevoked(grant, atMs)) return true;
  const wordMs = lastWordMs(grant, atMs);
  const { owner } = grant.granted;
  if (account.hasForgotten(wordMs, atMs) || account.hasRestarted(owner, atMs)) return true;
  const dueMs = dueMsOf(life, lost);
  const aheadMs = account.steppedAheadMs(promisedMs(grant, dueMs, atMs), atMs, owner);
  return aheadMs > 0 && atMs >= dueMs - aheadMs - SLACK_MS;
}
