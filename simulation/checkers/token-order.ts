/**
 * Tokens only rise: with every grant of a name, as the store made them and as the holders saw them.
 * No two leases share one, and none is used that the store did not give.
 *
 * A store that lost its data while its clock was behind its tokens learns its last token only from
 * a client that has seen it. So the tokens that one process sees of a name rise under every fault.
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

const CHECKER = "token order";

export function checkTokenOrder(entries: readonly Entry[]): Violation[] {
  return [...checkStore(entries), ...checkHolders(entries)];
}

/** The highest token of a name so far, and when the store gave it. */
interface Highest {
  readonly token: bigint;
  readonly atMs: number;
}

function checkStore(entries: readonly Entry[]): Violation[] {
  const violations: Violation[] = [];
  const highest = new Map<string, Highest>();
  let forgotMs = Number.NEGATIVE_INFINITY;
  for (const entry of entries) {
    if (entry.type === "forgot") forgotMs = entry.atMs;
    if (entry.type !== "granted") continue;
    const { name, token, span, atMs } = entry;
    const before = highest.get(name);
    if (before && token <= before.token && !isBehind(entry, before, forgotMs)) {
      const message = `the store gave ${token} for "${name}" after ${before.token}`;
      violations.push({ checker: CHECKER, message, name, fromMs: before.atMs, toMs: atMs });
    }
    const last = token + BigInt(span) - 1n;
    if (!before || last > before.token) highest.set(name, { token: last, atMs });
  }
  return violations;
}

/** The store forgot the higher token, and its clock is behind that token. */
function isBehind(granted: EntryOf<"granted">, highest: Highest, forgotMs: number): boolean {
  return forgotMs >= highest.atMs && BigInt(granted.clockUs) <= highest.token;
}

function checkHolders(entries: readonly Entry[]): Violation[] {
  const account = new StoreAccount(entries);
  const violations: Violation[] = [];
  const names = new Map<string, HeldLife[]>();
  for (const life of livesOf(entries).values()) {
    if (!isHeld(life)) continue;
    const { name } = life.held;
    const earlier = names.get(name) ?? [];
    names.set(name, earlier);
    const message = problem(life, earlier, account);
    if (message) {
      const { atMs } = life.held;
      violations.push({ checker: CHECKER, message, name, fromMs: life.asked.atMs, toMs: atMs });
    }
    earlier.push(life);
  }
  return violations;
}

type HeldLife = Life & { readonly held: EntryOf<"held"> };

function isHeld(life: Life): life is HeldLife {
  return life.held !== null;
}

/**
 * The later of two grants came from a store that had forgotten the earlier, with a clock behind it.
 */
function isExcused(a: EntryOf<"granted">, b: EntryOf<"granted">, account: StoreAccount): boolean {
  const [earlier, later] = a.atMs < b.atMs ? [a, b] : [b, a];
  return account.hasForgotten(earlier.atMs, later.atMs) && BigInt(later.clockUs) <= earlier.token;
}

/**
 * A turn on a grant that the store revoked, forgot or timed out by a jump of its clock before it
 * made the other one. Excused only if the turn begins before its process is told, and no later
 * after the other grant than by the jump; a fence refuses its lower token.
 */
function isOvertaken(
  { atMs, process }: EntryOf<"held">,
  grant: GrantAccount,
  other: EntryOf<"granted">,
  account: StoreAccount,
): boolean {
  const { granted } = grant;
  if (granted.atMs >= other.atMs || atMs > toldMsOf(grant, process)) return false;
  const wordMs = lastWordMs(grant);
  if (wordMs > other.atMs) return false;
  if (wasRevoked(grant, other.atMs)) return true;
  if (account.hasForgotten(wordMs, other.atMs)) return true;
  const sinceMs = promisedMs(grant, atMs, other.atMs);
  const aheadMs = account.steppedAheadMs(sinceMs, other.atMs, granted.owner);
  return atMs - other.atMs < aheadMs * CLOCK_TOLERANCE;
}

function problem(life: HeldLife, earlier: HeldLife[], account: StoreAccount): string | null {
  const { name, token, process, lease } = life.held;
  const grant = account.grantOf(life.held);
  if (!grant) return `${lease} holds "${name}" with ${token}, which the store never gave`;
  for (const { held } of earlier) {
    const wasAhead = held.atMs < life.asked.atMs;
    if (held.token < token || (held.token > token && !wasAhead)) continue;
    const other = account.grantOf(held)?.granted;
    // A request carries the highest token that its process has seen: the store counts on from it.
    const isSeen = wasAhead && held.process === process;
    if (other && !isSeen && isExcused(other, grant.granted, account)) continue;
    if (other && !isSeen && isOvertaken(life.held, grant, other, account)) continue;
    if (held.token === token) return `${lease} and ${held.lease} share the token ${token}`;
    return `${lease} asked for "${name}" after ${held.lease} had ${held.token}, and got ${token}`;
  }
  return null;
}
