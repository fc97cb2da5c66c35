/**
 * The verdict on a history. The checkers of the simulation decide whether two held at once; a lock
 * that no process holds and that a process does not get is found here.
 */

import { checkExclusionByProbes } from "../simulation/checkers/exclusion.js";
import { type Life, livesOf } from "../simulation/checkers/life.js";
import type * as simulation from "../simulation/history.js";
import { NO_LIMIT } from "../src/rules/fits.js";
import type { Entry, EntryOf, Verdict } from "./history.js";
import { LOCK_NAME } from "./orders.js";

export interface Terms {
  /** How long a lock that no process holds may stay taken while a process asks. */
  readonly patienceMs: number;
  /** The lock stays taken forever unless it is released. */
  readonly isEndless: boolean;
  /** The processes must get the lock in the order in which they ask. */
  readonly isOrdered: boolean;
  /** When the trial ended. */
  readonly endMs: number;
}

export function judge(entries: readonly Entry[], terms: Terms): Verdict {
  return (
    judgeWrites(entries) ??
    judgeExclusion(entries) ??
    judgeWaits(entries, terms) ??
    (terms.isOrdered ? judgeOrder(entries) : null) ??
    good(entries)
  );
}

function judgeOrder(entries: readonly Entry[]): Verdict | null {
  const lanesOf = (type: "asks" | "believes"): string[] =>
    entries.flatMap((entry) => (entry.type === type ? [entry.lane] : []));
  const served = lanesOf("believes");
  const asked = lanesOf("asks").filter((lane) => served.includes(lane));
  const at = asked.findIndex((lane, index) => served[index] !== lane);
  if (at === -1) return null;
  const text = `${served[at]} was served before ${asked[at]}, which asked first`;
  return { kind: "overtaken", text };
}

function judgeExclusion(entries: readonly Entry[]): Verdict | null {
  const happened = simulated(entries);
  if (checkExclusionByProbes(happened).length === 0) return null;
  const lives = [...livesOf(happened).values()].filter(({ held }) => held);
  const overlaps = lives.flatMap((one, at) =>
    lives.slice(at + 1).map((other) => overlap(one, other)),
  );
  const ms = Math.round(Math.max(...overlaps));
  // The later holder is the rightful one: the other should have been told.
  const losers = lives.filter((one) => lives.some((other) => one !== other && begins(one, other)));
  const isTold = losers.every(({ asked }) => {
    return entries.some((entry) => entry.type === "told" && entry.lane === asked.process);
  });
  const text = `two held for ${ms} ms`;
  if (isTold) return { kind: "told late", ms, text: `${text}, then the first was told` };
  return { kind: "two held", ms, text };
}

/** `one` worked before `other`, and on when `other` worked. */
function begins(one: Life, other: Life): boolean {
  return fromMs(one) < fromMs(other) && overlap(one, other) > 0;
}

function fromMs({ held }: Life): number {
  return held?.atMs ?? Number.POSITIVE_INFINITY;
}

function overlap(one: Life, other: Life): number {
  const toMs = Math.min(one.provenMs, other.provenMs);
  return Math.max(0, toMs - Math.max(fromMs(one), fromMs(other)));
}

/** A write that the resource accepted after a write of a later holder. */
function judgeWrites(entries: readonly Entry[]): Verdict | null {
  const believed = entries.filter((entry) => entry.type === "believes");
  const writes = entries.filter((entry) => entry.type === "writes");
  const late = writes.find(({ lane, atMs }) => {
    const begun = believed.find((one) => one.lane === lane)?.atMs ?? 0;
    return believed.some((one) => one.lane !== lane && one.atMs > begun && one.atMs < atMs);
  });
  if (!late) return null;
  const text = `the late write of ${late.lane}`;
  if (late.isRefused) return { kind: "held", text: `${text} was refused` };
  return { kind: "two held", ms: 0, text: `${text} took effect` };
}

function judgeWaits(
  entries: readonly Entry[],
  { patienceMs, isEndless, endMs }: Terms,
): Verdict | null {
  const { ms, toMs } = longestWait(entries, endMs);
  if (ms <= patienceMs) return null;
  const isGhost = entries.some(
    (entry) => entry.type === "fault" && entry.what === "late copy" && entry.atMs < toMs,
  );
  const kind = isGhost ? "ghost" : "stuck";
  if (isEndless && toMs === endMs) return { kind, ms: null, text: `${kind} for ever` };
  return { kind, ms: Math.round(ms), text: `${kind} for ${Math.round(ms)} ms` };
}

interface Wait {
  readonly ms: number;
  readonly toMs: number;
}

/** The longest time in which a process asked and no process believed. */
function longestWait(entries: readonly Entry[], endMs: number): Wait {
  const asking = new Set<string>();
  const believing = new Set<string>();
  let longest: Wait = { ms: 0, toMs: 0 };
  let sinceMs: number | null = null;
  const measure = (toMs: number): void => {
    const ms = sinceMs === null ? 0 : toMs - sinceMs;
    if (ms > longest.ms) longest = { ms, toMs };
  };
  for (const entry of entries) {
    measure(entry.atMs);
    follow(entry, asking, believing);
    const isWaiting = asking.size > 0 && believing.size === 0;
    sinceMs = isWaiting ? (sinceMs ?? entry.atMs) : null;
  }
  measure(endMs);
  return longest;
}

function follow(entry: Entry, asking: Set<string>, believing: Set<string>): void {
  switch (entry.type) {
    case "asks":
      asking.add(entry.lane);
      return;
    case "believes":
      asking.delete(entry.lane);
      believing.add(entry.lane);
      return;
    case "refused":
      asking.delete(entry.lane);
      return;
    case "releases":
    case "disbelieves":
      believing.delete(entry.lane);
      return;
    case "fault":
      if (entry.what !== "killed") return;
      asking.delete(entry.lane);
      believing.delete(entry.lane);
  }
}

function good(entries: readonly Entry[]): Verdict {
  const isLoss = (entry: Entry): entry is EntryOf<"disbelieves"> => entry.type === "disbelieves";
  const loss = entries.find(isLoss);
  if (loss) return { kind: "told in time", text: `${loss.lane} stopped before the next one began` };
  const [unserved] = unservedOf(entries);
  const rest = unserved === undefined ? "" : `; ${unserved} never had it`;
  return { kind: "held", text: `held by one at a time${rest}` };
}

/** The processes that asked, lived on, and never had the lock. */
function unservedOf(entries: readonly Entry[]): string[] {
  const isOver = (lane: string): boolean =>
    entries.some((entry) => {
      if (!("lane" in entry) || entry.lane !== lane) return false;
      return entry.type === "believes" || (entry.type === "fault" && entry.what === "killed");
    });
  const asking = entries.flatMap((entry) => (entry.type === "asks" ? [entry.lane] : []));
  return asking.filter((lane) => !isOver(lane));
}

/** The entries of a lab's history as the simulation's checkers read them. */

/** A process asks once in a trial, so its lane names the lease as well. */
export function simulated(entries: readonly Entry[]): simulation.Entry[] {
  return entries.flatMap((entry) => {
    const happening = happeningOf(entry);
    return happening ? [{ atMs: entry.atMs, ...happening }] : [];
  });
}

const CLAIM = {
  name: LOCK_NAME,
  mode: "exclusive",
  weight: 1,
  limit: NO_LIMIT,
} as const;

function happeningOf(entry: Entry): simulation.Happening | null {
  switch (entry.type) {
    case "asks":
      return { type: "asked", ...of(entry.lane), ...CLAIM, withinMs: Infinity, waits: true };
    case "believes":
      return {
        type: "held",
        ...of(entry.lane),
        ...CLAIM,
        ...HELD,
        token: BigInt(entry.token ?? 0),
      };
    // Each step of work follows a check that passed.
    case "worksFrom":
    case "worksTo":
      return { type: "probed", lease: entry.lane, holds: true };
    case "releases":
      return { type: "releasing", lease: entry.lane };
    case "told":
      return { type: "lost", lease: entry.lane, reason: entry.reason };
    case "fault":
      return entry.what === "killed" ? { type: "crashed", process: entry.lane } : null;
    default:
      return null;
  }
}

const HELD = {
  ttlMs: 0,
  renews: true,
  graceMs: 0,
  longestMs: Infinity,
  turns: 1,
  listens: true,
} as const;

function of(lane: string): { process: string; lease: string; owner: string } {
  return { process: lane, lease: lane, owner: lane };
}
