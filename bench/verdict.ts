/** How Holdfast stands in a question, in a sentence. */
import { bestOf, type Standing } from "./contest.js";
import type { Result } from "./results.js";
import { figure, timesFloor } from "./table.js";

/** Figures this close to each other count as level: ahead, and behind by rounding alone. */
const LEVEL = 0.03;
const ROUNDING = 0.005;

/** Holdfast beside the best of the other packages, of which each is NaN where there is none. */
interface Pair {
  readonly ours: Standing;
  readonly peer: Standing;
}

/**
 * The contestants that a question compares. Ours is Holdfast with its defaults, not the best of
 * several: a reader gets that one. Where contestants have conditions ("holdfast, 5 clients"), it is
 * the one with the condition of the peer, or else the first.
 */
export function pairOf({ question, standings }: Result): Pair {
  const peer = bestOf("peer", question.better, standings);
  const own = standings.filter(({ role, failure }) => role === "holdfast" && failure === null);
  const plain = own.filter(({ name }) => name.split(", ")[0] === "holdfast");
  const candidates = plain.length > 0 ? plain : own;
  const [, condition] = peer.name.split(", ");
  const alike = candidates.find(({ name }) => condition && name.split(", ")[1] === condition);
  const ours = alike ?? candidates[0] ?? bestOf("holdfast", question.better, standings);
  return { ours, peer };
}

/** Empty where there is nothing to compare with. */
export function verdict(result: Result): string {
  const times = timesFloor(pairOf(result).ours, result.standings);
  const raw =
    result.question.better === "higher"
      ? `Holdfast reaches ${figure(times)} × the rate of the raw commands.`
      : `Holdfast needs ${figure(times)} × what the raw commands need.`;
  return [beside(result), Number.isFinite(times) ? raw : ""].filter(Boolean).join(" ");
}

/** All contestants of Holdfast that are behind the best of the other packages; empty for none. */
export function behind({ question, standings }: Result): string {
  const peer = bestOf("peer", question.better, standings);
  const worse = standings.filter(
    (ours) => ours.role === "holdfast" && isBehind(advantageOf(question.better, { ours, peer })),
  );
  if (worse.length === 0) return "";
  return `${told(peer)} ${question.unit}; ${worse.map(told).join(", ")}`;
}

function beside(result: Result): string {
  const pair = pairOf(result);
  const advantage = advantageOf(result.question.better, pair);
  if (Number.isNaN(advantage)) return "";
  const standing = `(${told(pair.ours)}, ${told(pair.peer)} ${result.question.unit})`;
  if (isBehind(advantage)) return `**Another package is ahead** ${standing}.`;
  if (advantage <= 1 + LEVEL) return `Holdfast is level with the best other package ${standing}.`;
  return `Holdfast is ahead ${standing}.`;
}

export function isBehind(advantage: number): boolean {
  return advantage < 1 - ROUNDING;
}

/** How many times better than the peer; NaN where one of the two has no figures. */
export function advantageOf(better: "lower" | "higher", { ours, peer }: Pair): number {
  return better === "lower" ? peer.median / ours.median : ours.median / peer.median;
}

function told({ name, median }: Standing): string {
  return `${name}: ${figure(median)}`;
}
