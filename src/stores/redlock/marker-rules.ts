/**
 * The right of one node to vote, as pure functions of its marker and its clock: the part of the
 * specification of lua/shared.lua and lua/node.lua that is about the node, not about a name.
 */
import { type Instruction, longRestMs, type Marker } from "./admission.js";
import type { Asleep, Foreign, NodeRelease } from "./codec.js";

/** One process of a server, with its marker. */
export interface MarkedNode {
  readonly run: string;
  readonly startedMs: number;
  marker: Marker | null;
  /** The data of another program at the key of the marker. */
  foreign?: Foreign | null;
  /**
   * The server decides alone, and has no marker. It grants no lock until that long after its start.
   */
  readonly lone?: { readonly startDelayMs: number };
}

/** False when the instruction does not apply any more. */
export function instruct(
  node: MarkedNode,
  nowUs: number,
  set: string,
  instruction: Instruction,
): boolean {
  const { run, marker } = node;
  if (instruction.run !== run || node.foreign) return false;
  const isMarked = marker?.run === run;
  if (instruction.type === "admit") {
    if (!isMarked || marker.floor !== null || marker.fromMs > ms(nowUs)) return false;
    const floor = Math.max(instruction.floor, marker.top);
    node.marker = { ...marker, floor, top: floor };
    return true;
  }
  const { how, maxTtlMs, restMs } = instruction;
  const overMs = ms(nowUs) + restMs;
  if (isMarked && marker.set !== set && how !== "now") return false;
  const isAwake = marker !== null && marker.fromMs <= ms(nowUs) && marker.floor !== null;
  if (isMarked && marker.set === set && (how !== "now" || isAwake)) {
    const moreMs = Math.max(0, maxTtlMs - marker.maxTtlMs);
    const laterMs = Math.max(marker.fromMs + moreMs, overMs);
    const fromMs = marker.fromMs > ms(nowUs) ? laterMs : marker.fromMs;
    node.marker = { ...marker, maxTtlMs: marker.maxTtlMs + moreMs, fromMs };
    return true;
  }
  const sinceMs = how === "join" ? ms(nowUs) : node.startedMs;
  // rule: restarted-node-waits
  const fromMs = how === "now" ? 0 : Math.max(sinceMs + maxTtlMs, overMs);
  const least = marker?.floor ?? 0;
  const floor = instruction.floor === null ? null : Math.max(least, instruction.floor, nowUs);
  const top = Math.max(least, marker?.top ?? 0, floor ?? 0);
  const { longTtlMs = 0, longUntilMs = 0 } = marker ?? {};
  node.marker = { run, set, fromMs, maxTtlMs, longTtlMs, longUntilMs, floor, top };
  return true;
}

/**
 * Announces that leases may be this long, for this time. A majority must know that before any node
 * votes for such a lease. When the last lease of that length has ended, the node forgets it.
 */
export function raise(
  node: MarkedNode,
  nowUs: number,
  set: string,
  { ttlMs, forMs }: { ttlMs: number; forMs: number },
): boolean {
  const { marker } = node;
  if (marker?.run !== node.run || marker.set !== set) return false;
  if (ttlMs <= marker.maxTtlMs) return true;
  const isOver = longRestMs({ nowUs, marker }) === 0;
  const longTtlMs = isOver ? ttlMs : Math.max(marker.longTtlMs, ttlMs);
  const longUntilMs = Math.max(isOver ? 0 : marker.longUntilMs, ms(nowUs) + forMs);
  node.marker = { ...marker, longTtlMs, longUntilMs };
  return true;
}

/** The longest lease that may be granted now. */
export function longestMs(marker: Marker, nowUs: number): number {
  const { maxTtlMs, longTtlMs, longUntilMs } = marker;
  return ms(nowUs) < longUntilMs ? Math.max(maxTtlMs, longTtlMs) : maxTtlMs;
}

/** A node that may have forgotten a lease does not say that the lease was absent. */
export function absence({ run, marker, lone }: MarkedNode, nowUs: number): NodeRelease {
  const isSure = lone !== undefined || (marker?.run === run && marker.fromMs <= ms(nowUs));
  return { type: isSure ? "absent" : "unsure" };
}

/** Why the node does not vote; null where it does. */
export function asleep(
  node: MarkedNode,
  nowUs: number,
  { set, ttlMs }: { readonly set: string; readonly ttlMs: number },
): Asleep | Foreign | null {
  const { run, marker, foreign, lone } = node;
  if (lone) {
    const waitMs = node.startedMs + lone.startDelayMs - ms(nowUs);
    return waitMs > 0 ? { type: "asleep", why: "young", waitMs } : null;
  }
  if (foreign) return foreign;
  // rule: marker-of-this-process-only
  if (marker?.run !== run) return { type: "asleep", why: "unmarked" };
  if (marker.set !== set) return { type: "asleep", why: "other_set", set: marker.set };
  const waitMs = marker.fromMs - ms(nowUs);
  if (waitMs > 0) return { type: "asleep", why: "young", waitMs };
  if (marker.floor === null) return { type: "asleep", why: "unfloored" };
  const maxTtlMs = longestMs(marker, nowUs);
  // rule: node-refuses-unannounced-leases
  if (maxTtlMs < ttlMs) return { type: "asleep", why: "short", maxTtlMs };
  // From now on the node votes, also after its clock was set back.
  node.marker = { ...marker, fromMs: 0 };
  return null;
}

/** The milliseconds of a time in microseconds. */
export function ms(nowUs: number): number {
  return Math.floor(nowUs / 1000);
}
