/**
 * Unknown is not lost: a lease ends before its deadline only for a reason that the store's account
 * shows, and where nothing goes wrong no lease that is renewed is lost at all. Nor does an
 * acquisition fail for a store that is there.
 */
import type { Entry, EntryOf } from "../history.js";
import { Freezes } from "./freezes.js";
import { type Life, livesOf } from "./life.js";
import { lastWordMs, StoreAccount } from "./store-account.js";
import type { Violation } from "./violation.js";

const SLACK_MS = 3;
/** A store that was silent for so long counts as out of reach. */
const SILENCE_MS = 5_000;
/** A process that has just woken up takes so long to hear from a store that is there. */
const AWAKE_MS = 100;
/** Sleep is known to 10 ms, and rounded up. */
const SLEEP_SLACK_MS = 30;

export function checkNeedlessLoss(
  entries: readonly Entry[],
  { isHealthy, hasStrays }: { readonly isHealthy: boolean; readonly hasStrays: boolean },
): Violation[] {
  const account = new StoreAccount(entries);
  const freezes = new Freezes(entries);
  const calmMs = entries.find(({ type }) => type === "calm")?.atMs ?? 0;
  return [...livesOf(entries).values()].flatMap((life) => {
    const { asked, held, lost, releasing, refused } = life;
    if (refused?.reason === "HF_STORE" && wasHeard(asked.process, calmMs, refused.atMs, freezes)) {
      const message = `${asked.lease} failed although the store was there`;
      const { name, atMs } = asked;
      return [{ checker: "needless loss", message, name, fromMs: atMs, toMs: refused.atMs }];
    }
    // An unknown copy of the release may have ended the lease.
    if (hasStrays && releasing && lost && lost.atMs > releasing.atMs) return [];
    if (!held || !lost || isExplained(held, lost, account)) return [];
    if (isDue(life, lost, freezes, isHealthy)) return [];
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

/** Whether a process could hear the store: it was there for long enough, and the process awake. */
function wasHeard(process: string, calmMs: number, atMs: number, freezes: Freezes): boolean {
  return atMs > calmMs + SILENCE_MS && !freezes.wasFrozen(process, atMs - AWAKE_MS, atMs);
}

function isDue(
  { asked, held, beliefs }: Life,
  { atMs, reason }: EntryOf<"lost">,
  freezes: Freezes,
  isHealthy: boolean,
): boolean {
  if (!held || reason === "max_hold" || reason === "session_ended") return true;
  const belief = beliefs.findLast((one) => one.atMs < atMs) ?? beliefs[0];
  const untilMs = belief?.untilMs ?? 0;
  const dueMs = reason === "expired" ? untilMs - held.graceMs : untilMs;
  // A process that was frozen when the deadline passed, or a round trip before it, could not renew
  // in time; nor could one that was given the lease so late that less than the grace was left soon.
  const sinceMs = held.graceMs > 0 ? asked.atMs : dueMs - SLACK_MS;
  const isExcused = !held.renews || !isHealthy || freezes.wasFrozen(held.process, sinceMs, dueMs);
  const slept = freezes.wasSuspended(held.process, held.atMs, atMs);
  return isExcused && atMs >= dueMs - (slept ? SLEEP_SLACK_MS : SLACK_MS);
}

function isExplained(
  held: EntryOf<"held">,
  { atMs }: EntryOf<"lost">,
  account: StoreAccount,
): boolean {
  const grant = account.grantOf(held);
  if (grant && grant.revokedMs <= atMs) return true;
  const wordMs = lastWordMs(grant, atMs);
  if (account.hasForgotten(wordMs, atMs)) return true;
  return account.steppedAheadMs(wordMs, atMs) > 0;
}
