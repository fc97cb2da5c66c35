/**
 * Programs are told in time: of the loss of a lease by its signal, at the deadline less the grace
 * at the latest; of the result of an acquisition within its wait; of a release within its bound.
 * And no program is given a lease that is over.
 */
import { LAST_TRY_MS } from "../../src/lease/client.js";
import { DEFAULTS } from "../../src/options.js";
import { LONGEST_RETRY_MS } from "../../src/stores/arbiter/acquisition.js";
import type { Entry } from "../history.js";
import { Freezes } from "./freezes.js";
import { type Life, livesOf } from "./life.js";
import { StoreAccount } from "./store-account.js";
import type { Violation } from "./violation.js";

/** Without faults, a holder learns of a revocation as soon as a message can arrive. */
export function checkRevocation(entries: readonly Entry[], withinMs: number): Violation[] {
  const account = new StoreAccount(entries);
  const freezes = new Freezes(entries);
  return [...livesOf(entries).values()].flatMap(({ held, beliefs, endedMs }) => {
    const grant = held && account.grantOf(held);
    if (!held || !grant || grant.revokedMs > endedMs) return [];
    const { name, lease, process, atMs } = held;
    const fromMs = Math.max(atMs, grant.revokedMs);
    const dueMs = freezes.latestMs(process, fromMs, withinMs + SLACK_MS);
    const untilMs = Math.min(endedMs, beliefs.at(-1)?.untilMs ?? endedMs);
    if (untilMs <= dueMs) return [];
    const message = `${lease} was revoked, and goes on for ${(untilMs - fromMs).toFixed(0)} ms`;
    return [{ checker: "told in time", message, name, fromMs, toMs: dueMs }];
  });
}

/** Timers are this late at most, and one turn may take several. */
const SLACK_MS = 10;
/** Timers stop while the machine sleeps: the keeper reads the clock within this after it. */
const SLEEP_SLACK_MS = 1_050;
/**
 * A process that was stopped finds a stale reply when it runs again. It asks again within the
 * longest pause between two requests, and its limit on the silence of the store starts at that
 * reply.
 */
const TRY_SLACK_MS = DEFAULTS.storeTimeoutMs + LONGEST_RETRY_MS;
/** docs/guarantees.md: a release waits for the store for five seconds at most. */
const LONGEST_RELEASE_MS = 5_000;

/** How much longer a store may take where it has to ask several nodes. */
export interface Allowance {
  /** To give up a wait and the last try at its end. */
  readonly giveUpMs: number;
  /** To end a release whose time is over. */
  readonly releaseMs: number;
}

const NONE: Allowance = { giveUpMs: 0, releaseMs: 0 };

export function checkToldInTime(
  entries: readonly Entry[],
  allowance: Allowance = NONE,
): Violation[] {
  const freezes = new Freezes(entries);
  const endMs = entries.at(-1)?.atMs ?? 0;
  return [...livesOf(entries).values()].flatMap((life) => {
    const { asked } = life;
    const problem =
      checkResult(life, freezes, endMs, allowance) ??
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
  { giveUpMs }: Allowance,
): Problem {
  const { process, lease, atMs, withinMs } = asked;
  const toldMs = held?.atMs ?? refused?.atMs ?? Number.POSITIVE_INFINITY;
  if (freezes.wasSuspended(process, atMs, Math.min(toldMs, endMs))) return null;
  // docs/options.md: at the end of a wait the store is asked once more, for two seconds at most.
  const slackMs = asked.waits ? SLACK_MS + LAST_TRY_MS + giveUpMs : TRY_SLACK_MS;
  const dueMs = freezes.latestMs(process, atMs + withinMs, slackMs);
  if (Math.min(toldMs, endedMs, endMs) <= dueMs) return null;
  return {
    message: `${lease} was to be told within ${withinMs.toFixed(0)} ms, and was not`,
    dueMs,
  };
}

function checkLoss(
  { asked, held, beliefs, lost, endedMs }: Life,
  freezes: Freezes,
  endMs: number,
): Problem {
  // The belief that is recorded at the end of a lease is in the past; an earlier one counts.
  const untilMs = beliefs.findLast((belief) => belief.untilMs > belief.atMs)?.untilMs;
  if (!held || !beliefs[0]) return null;
  const { process, lease, atMs, graceMs } = held;
  const first = beliefs[0].untilMs;
  if (first <= atMs && !freezes.wasFrozen(process, atMs - 1, atMs)) {
    return { message: `${lease} was over when it was given`, dueMs: atMs };
  }
  if (untilMs !== undefined && untilMs > atMs + held.longestMs + SLACK_MS) {
    return { message: `${lease} is relied on for too long`, dueMs: untilMs };
  }
  if (!held.listens || untilMs === undefined) return null;
  const slept = freezes.wasSuspended(process, asked.atMs - SLEEP_SLACK_MS, untilMs);
  const slackMs = slept ? SLEEP_SLACK_MS : SLACK_MS;
  const dueMs = freezes.latestMs(process, Math.max(atMs, untilMs - graceMs), slackMs);
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
  if (!releasing || !released) return null;
  const { process, lease } = asked;
  const { atMs } = releasing;
  if (freezes.wasSuspended(process, atMs, released.atMs)) return null;
  const dueMs = freezes.latestMs(process, atMs + LONGEST_RELEASE_MS, SLACK_MS + releaseMs);
  if (Math.min(released.atMs, endMs) <= dueMs) return null;
  return { message: `the release of ${lease} took too long`, dueMs };
}
