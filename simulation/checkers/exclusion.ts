/**
 * Two leases that programs rely on at the same time must be compatible.
 *
 * By belief: a program relies on a lease from the moment `acquire` resolves until `release` is
 * called, the signal aborts, or the deadline passes by the clock of the process. A process that is
 * frozen counts, because it may run the next moment. By probes: between the first and the last time
 * that `assertHeld` passed.
 *
 * Only a lease that the store itself ended early, and did not renew afterwards, is excused, and
 * only until its process knows:
 * - a lease that was revoked before the newer grant: `revoke` frees the lock at once;
 * - a lease that the store forgot between its last word about it and the newer grant;
 * - a lease that a jump of the store's clock ended early, for no longer than the jump; of several
 *   nodes, only a jump of a node that had voted for the lease.
 * Tokens fence all of these. A process knows from the end of the turn in which it was told. A
 * program that is granted a lock knows that its earlier leases that exclude the new one have
 * ended.
 */
import type { Entry, EntryOf } from "../history.js";
import { type Life, livesOf } from "./life.js";
import {
  CLOCK_TOLERANCE,
  type GrantAccount,
  lastWordMs,
  promisedMs,
  StoreAccount,
  toldMsOf,
  wasRevoked,
} from "./store-account.js";
import type { Violation } from "./violation.js";

interface Reliance {
  readonly held: EntryOf<"held">;
  readonly grant: GrantAccount | undefined;
  readonly fromMs: number;
  readonly toMs: number;
}

export function checkExclusionByBelief(entries: readonly Entry[]): Violation[] {
  return check("exclusion by belief", entries, ({ endedMs, beliefs }) => {
    return Math.min(endedMs, beliefs.at(-1)?.untilMs ?? Number.POSITIVE_INFINITY);
  });
}

export function checkExclusionByProbes(entries: readonly Entry[]): Violation[] {
  return check("exclusion by probes", entries, ({ provenMs }) => provenMs);
}

function check(
  checker: string,
  entries: readonly Entry[],
  endOf: (life: Life) => number,
): Violation[] {
  const account = new StoreAccount(entries);
  const names = new Map<string, Reliance[]>();
  for (const life of livesOf(entries).values()) {
    const { held } = life;
    if (!held) continue;
    const reliances = names.get(held.name) ?? [];
    names.set(held.name, reliances);
    const grant = account.grantOf(held);
    reliances.push({ held, grant, fromMs: held.atMs, toMs: endOf(life) });
  }
  return [...names.values()].flatMap((reliances) => checkName(checker, reliances, account));
}

function checkName(checker: string, reliances: Reliance[], account: StoreAccount): Violation[] {
  const violations: Violation[] = [];
  let active: Reliance[] = [];
  for (const next of reliances.sort((a, b) => a.fromMs - b.fromMs)) {
    active = active.filter(({ toMs }) => toMs > next.fromMs);
    const others = conflict(active, next, account);
    if (next.toMs >= next.fromMs && others) violations.push(violation(checker, others, next));
    active.push(next);
  }
  return violations;
}

/** The leases beside which `next` cannot hold the lock; null where there are none. */
function conflict(
  active: readonly Reliance[],
  next: Reliance,
  account: StoreAccount,
): readonly Reliance[] | null {
  const others = active.filter((other) => !isExcused(other, next, account));
  const alone = others.find((other) => !areCompatible([other, next]));
  if (alone) return [alone];
  // A lease that the store had ended before it made a newer grant does not count beside that grant.
  // `next` may be older than both, and come late.
  const counted = others.filter((other) => {
    const newer = others.filter((one) => grantedMsOf(one) > grantedMsOf(other));
    return !newer.some((one) => isExcused(other, one, account));
  });
  return areCompatible([...counted, next]) ? null : counted;
}

/** One lease alone, or all shared with the sum of their weights within every limit. */
function areCompatible(reliances: readonly Reliance[]): boolean {
  if (reliances.length === 1) return true;
  if (reliances.some(({ held }) => held.mode === "exclusive")) return false;
  const sum = reliances.reduce((weight, { held }) => weight + held.weight, 0);
  return reliances.every(({ held }) => sum <= held.limit);
}

function isExcused(a: Reliance, b: Reliance, account: StoreAccount): boolean {
  const byTime = grantedMsOf(a) - grantedMsOf(b);
  const isInOrder = byTime < 0 || (byTime === 0 && a.held.token < b.held.token);
  const [older, newer] = isInOrder ? [a, b] : [b, a];
  const grantedMs = grantedMsOf(newer);
  if (older.toMs > toldMsOf(older.grant, older.held.process)) return false;
  const isSameProgram = programOf(older.held) === programOf(newer.held);
  if (isSameProgram && !areCompatible([older, newer])) return false;
  const wordMs = lastWordMs(older.grant);
  // The store went on to renew it, so the store had not ended it.
  if (wordMs > grantedMs) return false;
  if (wasRevoked(older.grant, grantedMs)) return true;
  if (account.hasForgotten(wordMs, grantedMs)) return true;
  const sinceMs = promisedMs(older.grant, older.toMs, grantedMs);
  const aheadMs = account.steppedAheadMs(sinceMs, grantedMs, older.grant?.granted.owner);
  return aheadMs > 0 && older.toMs - grantedMs <= aheadMs * CLOCK_TOLERANCE;
}

function programOf({ lease }: EntryOf<"held">): string {
  return lease.slice(0, lease.indexOf("/"));
}

function grantedMsOf({ grant, fromMs }: Reliance): number {
  return grant?.granted.atMs ?? fromMs;
}

function violation(checker: string, others: readonly Reliance[], next: Reliance): Violation {
  const toMs = Math.min(next.toMs, Math.max(...others.map((other) => other.toMs)));
  const holders = [...others, next].map(({ held }) => {
    const share = held.mode === "shared" ? `${held.weight} of ${held.limit}` : held.mode;
    return `${held.lease} (${share}, token ${held.token})`;
  });
  return {
    checker,
    message:
      `${holders.join(" and ")} hold "${next.held.name}" at once ` +
      `for ${(toMs - next.fromMs).toFixed(1)} ms`,
    name: next.held.name,
    fromMs: Math.min(next.fromMs, ...others.map((other) => other.fromMs)),
    toMs,
  };
}
