/**
 * Nobody waits for a lock that is free: when every waiter of a name would fit in with those who hold it,
 * one of them gets it within a bound. Whoever stands first in the queue, it fits; so it is not the order
 * that holds them up, but a message that was lost for good. Counts from the moment all is calm.
 */
import type { Entry } from "../history.js";
import { livesOf } from "./life.js";
import type { Violation } from "./violation.js";

interface Claim {
  readonly mode: "exclusive" | "shared";
  readonly weight: number;
  readonly limit: number;
}

interface Moment {
  readonly atMs: number;
  readonly change: "waits" | "waits no more" | "holds" | "holds no more";
  readonly lease: string;
  readonly claim: Claim;
}

/** How long a lock may stay free while somebody waits for it. */
export interface WakeUpBound {
  readonly boundMs: number;
  /** How much longer for every process that died: the store has to find out. */
  readonly perCrashMs: number;
  /** For how long a dead process still stands in the queue. */
  readonly rememberedMs: number;
}

export function checkLostWakeUps(entries: readonly Entry[], bound: WakeUpBound): Violation[] {
  const calmMs = entries.find(({ type }) => type === "calm")?.atMs ?? 0;
  const endMs = entries.at(-1)?.atMs ?? 0;
  const crashesMs = entries.filter(({ type }) => type === "crashed").map(({ atMs }) => atMs);
  // A clock that was set back makes the leases of the dead last longer by as much.
  const leastMs = bound.boundMs + setBackMs(entries);
  const longestMs = (fromMs: number, toMs: number): number => {
    const isFelt = (atMs: number): boolean => atMs > fromMs - bound.rememberedMs && atMs < toMs;
    return leastMs + bound.perCrashMs * crashesMs.filter(isFelt).length;
  };
  return [...momentsOf(entries)].flatMap(([name, moments]) => {
    const stall = findStall(moments, calmMs, endMs, longestMs);
    if (!stall) return [];
    const { fromMs, toMs, lease } = stall;
    const message = `${lease} waits for "${name}", which is free for ${(toMs - fromMs).toFixed(0)} ms`;
    return [{ checker: "lost wake-ups", message, name, fromMs, toMs }];
  });
}

function setBackMs(entries: readonly Entry[]): number {
  return entries.reduce((sum, entry) => sum + (entry.type === "stepped" ? Math.max(0, -entry.byMs) : 0), 0);
}

function momentsOf(entries: readonly Entry[]): Map<string, Moment[]> {
  const names = new Map<string, Moment[]>();
  for (const [lease, { asked, held, refused, endedMs, beliefs }] of livesOf(entries)) {
    const moments = names.get(asked.name) ?? [];
    names.set(asked.name, moments);
    const claim = asked;
    const add = (atMs: number, change: Moment["change"]): void => {
      if (Number.isFinite(atMs)) moments.push({ atMs, change, lease, claim });
    };
    if (asked.waits) {
      add(asked.atMs, "waits");
      add(held?.atMs ?? refused?.atMs ?? endedMs, "waits no more");
    }
    if (!held) continue;
    add(held.atMs, "holds");
    add(Math.min(endedMs, beliefs.at(-1)?.untilMs ?? endedMs), "holds no more");
  }
  for (const moments of names.values()) moments.sort((a, b) => a.atMs - b.atMs);
  return names;
}

function findStall(
  moments: readonly Moment[],
  calmMs: number,
  endMs: number,
  longestMs: (fromMs: number, toMs: number) => number,
): { readonly fromMs: number; readonly toMs: number; readonly lease: string } | null {
  const waiting = new Map<string, Claim>();
  const holding = new Map<string, Claim>();
  /** Since when somebody should have been served. */
  let openMs = Number.POSITIVE_INFINITY;
  const stallUntil = (toMs: number) => {
    const fromMs = Math.max(openMs, calmMs);
    const [lease] = waiting.keys();
    if (lease === undefined || toMs - fromMs <= longestMs(fromMs, toMs)) return null;
    return { fromMs, toMs, lease };
  };
  for (const { atMs, change, lease, claim } of moments) {
    const stall = stallUntil(atMs);
    if (stall) return stall;
    if (change === "waits") waiting.set(lease, claim);
    if (change === "waits no more") waiting.delete(lease);
    if (change === "holds") holding.set(lease, claim);
    if (change === "holds no more") holding.delete(lease);
    if (!isOpen(waiting, holding)) openMs = Number.POSITIVE_INFINITY;
    else if (change === "holds") openMs = atMs;
    else openMs = Math.min(openMs, atMs);
  }
  return stallUntil(endMs);
}

/** Somebody waits, and whoever of them is next would fit in. */
function isOpen(waiting: Map<string, Claim>, holding: Map<string, Claim>): boolean {
  if (waiting.size === 0) return false;
  const held = [...holding.values()];
  const sum = held.reduce((weight, claim) => weight + claim.weight, 0);
  return [...waiting.values()].every((claim) => {
    if (held.length === 0) return true;
    if ([claim, ...held].some(({ mode }) => mode === "exclusive")) return false;
    return [claim, ...held].every(({ limit }) => sum + claim.weight <= limit);
  });
}
