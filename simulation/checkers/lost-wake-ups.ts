/**
 * No waiter waits for a free lock: when every waiter of a name fits beside the holders, one of them
 * is granted the lock within a bound. The head of the queue fits, so the order is no reason to
 * wait: a wake-up was lost. The time counts from the end of all faults.
 */
import type { Entry } from "../history.js";
import { Freezes } from "./freezes.js";
import { type Life, livesOf } from "./life.js";
import { lastWordMs, StoreAccount } from "./store-account.js";
import type { Violation } from "./violation.js";
import { type Waste, WastedGrants } from "./wasted-grants.js";

interface Claim {
  readonly mode: "exclusive" | "shared";
  readonly weight: number;
  readonly limit: number;
}

interface Moment {
  readonly atMs: number;
  readonly change: "waits" | "dies waiting" | "waits no more" | "holds" | "holds no more";
  readonly lease: string;
  readonly claim: Claim;
}

/** How long a lock may stay free while a waiter waits, and the reasons for a longer time. */
export interface WakeUpBound extends Waste {
  readonly boundMs: number;
  /** How much longer, at most, while processes are frozen: they do not take or pass on the lock. */
  readonly blockMs: number;
  /** For how long a process that died keeps its places in the queue. */
  readonly silentMs: number;
}

export function checkLostWakeUps(entries: readonly Entry[], bound: WakeUpBound): Violation[] {
  const calmMs = entries.find(({ type }) => type === "calm")?.atMs ?? 0;
  const endMs = entries.at(-1)?.atMs ?? 0;
  const wasted = new WastedGrants(entries, bound);
  const freezes = new Freezes(entries);
  const longestMs = (name: string, fromMs: number, toMs: number): number => {
    const blockMs = Math.min(bound.blockMs, freezes.totalMs(fromMs, toMs));
    const extraMs = blockMs + setBackMs(entries, bound, fromMs);
    return bound.boundMs + extraMs + wasted.costMs(name, fromMs, toMs);
  };
  return [...momentsOf(entries, calmMs, bound)].flatMap(([name, moments]) => {
    const stall = findStall(moments, calmMs, endMs, (fromMs, toMs) => {
      return toMs - fromMs > bound.boundMs && toMs - fromMs > longestMs(name, fromMs, toMs);
    });
    if (!stall) return [];
    const { fromMs, toMs, lease } = stall;
    const freeMs = (toMs - fromMs).toFixed(0);
    const message = `${lease} waits for "${name}", which is free for ${freeMs} ms`;
    return [{ checker: "lost wake-ups", message, name, fromMs, toMs }];
  });
}

/**
 * A clock that was set back prolongs the leases and the places that the store had then by as much,
 * also those of dead processes; when these are gone, it has no effect any more.
 */
function setBackMs(entries: readonly Entry[], bound: WakeUpBound, fromMs: number): number {
  let backMs = 0;
  let lastMs = Number.NEGATIVE_INFINITY;
  for (const entry of entries) {
    if (entry.type !== "stepped" || entry.byMs > 0) continue;
    backMs -= entry.byMs;
    lastMs = entry.atMs;
  }
  const effectMs = lastMs + backMs + Math.max(bound.leaseMs, bound.silentMs) - fromMs;
  return Math.max(0, Math.min(backMs, effectMs));
}

function momentsOf(
  entries: readonly Entry[],
  calmMs: number,
  { boundMs, silentMs }: WakeUpBound,
): Map<string, Moment[]> {
  const account = new StoreAccount(entries);
  const crashes = entries.filter((entry) => entry.type === "crashed");
  /** The process died right after it sent the release, which never arrived. */
  const diedReleasing = ({ asked, held, released }: Life): boolean => {
    if (!held || !released) return false;
    const { atMs } = released;
    const lastMs = Math.max(atMs, calmMs) + boundMs;
    const crash = crashes.find(({ process, atMs: crashMs }) => {
      return process === asked.process && crashMs >= atMs && crashMs <= lastMs;
    });
    return crash !== undefined && account.withdrawals(held, atMs, Number.POSITIVE_INFINITY) === 0;
  };
  const names = new Map<string, Moment[]>();
  for (const [lease, life] of livesOf(entries)) {
    const { asked, held, refused, endedMs, beliefs, hasCrashed } = life;
    const moments = names.get(asked.name) ?? [];
    names.set(asked.name, moments);
    const claim = asked;
    const add = (atMs: number, change: Moment["change"]): void => {
      if (Number.isFinite(atMs)) moments.push({ atMs, change, lease, claim });
    };
    if (asked.waits) {
      add(asked.atMs, "waits");
      const isDead = hasCrashed && !held;
      if (isDead) add(endedMs, "dies waiting");
      add(isDead ? endedMs + silentMs : (held?.atMs ?? refused?.atMs ?? endedMs), "waits no more");
    }
    if (!held) continue;
    add(held.atMs, "holds");
    // A holder that died does not release: its lease has to expire.
    const grant = account.grantOf(held);
    const expiryMs = lastWordMs(grant, endedMs + silentMs) + held.ttlMs;
    const untilMs = beliefs.at(-1)?.untilMs ?? endedMs;
    const isLeft = hasCrashed || diedReleasing(life);
    add(isLeft ? Math.max(untilMs, expiryMs) : Math.min(endedMs, untilMs), "holds no more");
  }
  for (const moments of names.values()) moments.sort((a, b) => a.atMs - b.atMs);
  return names;
}

function findStall(
  moments: readonly Moment[],
  calmMs: number,
  endMs: number,
  isTooLong: (fromMs: number, toMs: number) => boolean,
): { readonly fromMs: number; readonly toMs: number; readonly lease: string } | null {
  const waiting = new Map<string, Claim>();
  /** Still waiters for the store, and one of them may be the next. */
  const dead = new Map<string, Claim>();
  const holding = new Map<string, Claim>();
  /** Since when the store should have served a waiter. */
  let openMs = Number.POSITIVE_INFINITY;
  const stallUntil = (toMs: number) => {
    const fromMs = Math.max(openMs, calmMs);
    const [lease] = waiting.keys();
    if (lease === undefined || !isTooLong(fromMs, toMs)) return null;
    return { fromMs, toMs, lease };
  };
  for (const { atMs, change, lease, claim } of moments) {
    const stall = stallUntil(atMs);
    if (stall) return stall;
    if (change === "waits") waiting.set(lease, claim);
    if (change === "dies waiting") dead.set(lease, claim);
    if (change === "dies waiting" || change === "waits no more") waiting.delete(lease);
    if (change === "waits no more") dead.delete(lease);
    if (change === "holds") holding.set(lease, claim);
    if (change === "holds no more") holding.delete(lease);
    if (!isOpen(waiting, dead, holding)) openMs = Number.POSITIVE_INFINITY;
    else if (change === "holds") openMs = atMs;
    else openMs = Math.min(openMs, atMs);
  }
  return stallUntil(endMs);
}

/** There are waiters, and every one of them fits beside the holders. */
function isOpen(
  waiting: Map<string, Claim>,
  dead: Map<string, Claim>,
  holding: Map<string, Claim>,
): boolean {
  if (waiting.size === 0) return false;
  const held = [...holding.values()];
  const sum = held.reduce((weight, claim) => weight + claim.weight, 0);
  return [...waiting.values(), ...dead.values()].every((claim) => {
    if (held.length === 0) return true;
    if ([claim, ...held].some(({ mode }) => mode === "exclusive")) return false;
    return [claim, ...held].every(({ limit }) => sum + claim.weight <= limit);
  });
}
