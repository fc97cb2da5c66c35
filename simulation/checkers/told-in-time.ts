/**
 * Programs are told in time: of the loss of a lease by its signal, at the deadline less the grace
 * at the latest; of the result of an acquisition within its wait; of a release within its bound.
 * And no program is given a lease that is over.
 */
import { GRACE_MS } from "../../src/lease/request-limit.js";
import type { Entry } from "../history.js";
import { Freezes } from "./freezes.js";
import { type Life, livesOf } from "./life.js";
import { StoreAccount } from "./store-account.js";
import type { Violation } from "./violation.js";

/**
 * Without faults, a holder learns of a revocation as soon as a message can arrive, also one that
 * gets its lease after that. Only the time for which its process is frozen is excused.
 */
export function checkRevocation(entries: readonly Entry[], withinMs: number): Violation[] {
  const account = new StoreAccount(entries);
  const freezes = new Freezes(entries);
  return [...livesOf(entries).values()].flatMap(({ held, beliefs, endedMs }) => {
    const grant = held && account.grantOf(held);
    if (!held || !grant || grant.revokedMs > endedMs) return [];
    const { name, lease, process } = held;
    const fromMs = grant.revokedMs;
    const dueMs = freezes.latestMs(process, fromMs, withinMs + SLACK_MS);
    const untilMs = Math.min(endedMs, beliefs.at(-1)?.untilMs ?? endedMs);
    if (untilMs <= dueMs) return [];
    const message = `${lease} was revoked, and goes on for ${(untilMs - fromMs).toFixed(0)} ms`;
    return [{ checker: "told in time", message, name, fromMs, toMs: dueMs }];
  });
}

/** Timers are this late at most, and one turn may take several. */
const SLACK_MS = 10;
/** Timers stop while the machine sleeps: the lease renewer reads the clock within this after it. */
const SLEEP_SLACK_MS = 1_050;
/** docs/guarantees.md: a release waits for the store for five seconds at most. */
const MAX_RELEASE_MS = 5_000;

/** How much longer a store may take where it has to ask several nodes. */
export interface Allowance {
  /** To end a release whose time is over. */
  readonly releaseMs: number;
}

const NONE: Allowance = { releaseMs: 0 };

export function checkToldInTime(
  entries: readonly Entry[],
  allowance: Allowance = NONE,
): Violation[] {
  const freezes = new Freezes(entries);
  const endMs = entries.at(-1)?.atMs ?? 0;
  return [...livesOf(entries).values()].flatMap((life) => {
    const { asked } = life;
    const problem =
      checkResult(life, freezes, endMs) ??
      checkLoss(life, freezes, endMs) ??
      checkRelease(life, freezes, endMs, allowance);
    if (!problem) return [];
    const { message, dueMs } = problem;
    const fromMs = asked.atMs;
    return [{ checker: "told in time", message, name: asked.name, fromMs, toMs: dueMs }];
  });
}

type Problem = { readonly message: string; readonly dueMs: number } | null;

function checkResult(
  { asked, held, refused, endedMs }: Life,
  freezes: Freezes,
  endMs: number,
): Problem {
  const { process, lease, atMs, withinMs } = asked;
  const toldMs = held?.atMs ?? refused?.atMs ?? Number.POSITIVE_INFINITY;
  const sleptMs = freezes.sleptMs(process, atMs, Math.min(toldMs, endMs));
  const boundMs = atMs + withinMs + sleptMs;
  // docs/options.md: a call ends this long after its `waitMs`, whatever the store does.
  const dueMs = freezes.latestMs(process, boundMs, GRACE_MS + SLACK_MS);
  if (Math.min(toldMs, endedMs, endMs) <= dueMs) return null;
  return {
    message: `${lease} was to be told within ${withinMs.toFixed(0)} ms, and was not`,
    dueMs,
  };
}

function checkLoss(
  { held, beliefs, lost, endedMs }: Life,
  freezes: Freezes,
  endMs: number,
): Problem {
  if (!held || !beliefs[0]) return null;
  const { process, lease, atMs, graceMs } = held;
  // A process that was frozen between the answer and the end of `acquire` got it too late.
  if (beliefs[0].untilMs <= atMs && !freezes.wasFrozen(process, atMs - 1, atMs)) {
    return { message: `${lease} was over when it was given`, dueMs: atMs };
  }
  // The belief that is recorded at the end of a lease is in the past; an earlier one counts.
  const untilMs = beliefs.findLast((belief) => belief.untilMs > belief.atMs)?.untilMs ?? atMs;
  if (untilMs > atMs + held.longestMs + SLACK_MS) {
    return { message: `${lease} is relied on for too long`, dueMs: untilMs };
  }
  if (!held.listens) return null;
  const endingMs = Math.max(atMs, untilMs - graceMs);
  // A sleep that ended earlier was noticed before the lease ended.
  const slept = freezes.sleptMs(process, endingMs - SLEEP_SLACK_MS, endingMs) > 0;
  const dueMs = freezes.latestMs(process, endingMs, slept ? SLEEP_SLACK_MS : SLACK_MS);
  const toldMs = lost?.atMs ?? Number.POSITIVE_INFINITY;
  if (Math.min(toldMs, endedMs, endMs) <= dueMs) return null;
  return {
    message: `${lease} was not told of its loss (${graceMs.toFixed(0)} ms of grace)`,
    dueMs,
  };
}

function checkRelease(
  { asked, releasing, released }: Life,
  freezes: Freezes,
  endMs: number,
  { releaseMs }: Allowance,
): Problem {
  // A release that never ends is a task that is left at the end: see leftovers.ts.
  if (!releasing || !released) return null;
  const { process, lease } = asked;
  const { atMs } = releasing;
  const sleptMs = freezes.sleptMs(process, atMs, released.atMs);
  const boundMs = atMs + MAX_RELEASE_MS + sleptMs;
  const dueMs = freezes.latestMs(process, boundMs, SLACK_MS + releaseMs);
  if (Math.min(released.atMs, endMs) <= dueMs) return null;
  return { message: `the release of ${lease} took too long`, dueMs };
}
