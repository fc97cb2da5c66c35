/** How Holdfast stands in a question, in a sentence. */
import { bestOf } from "./contest.js";
import type { Result } from "./results.js";
import { figure, timesFloor } from "./table.js";

/** Figures this close to each other count as level. */
const LEVEL = 0.03;

/** Empty where there is nothing to compare with. */
export function verdict(result: Result): string {
  const { question, standings } = result;
  const times = timesFloor(bestOf("holdfast", question.better, standings), standings);
  const raw =
    question.better === "higher" ? "the rate of the raw commands" : "what the raw commands take";
  const floor = Number.isFinite(times) ? `That is ${figure(times)} × ${raw}.` : "";
  return [beside(result), floor].filter(Boolean).join(" ");
}

/** The figures of Holdfast and of the best of the other packages. */
export function standingOf({ question, standings }: Result): string {
  const figures = (["holdfast", "peer"] as const).map((role) => {
    const { name, median } = bestOf(role, question.better, standings);
    return `${name} ${figure(median)}`;
  });
  return `${figures.join(", ")} ${question.unit}`;
}

/** The best of the other packages has the better figure. */
export function isBehind(result: Result): boolean {
  return advantageOf(result) < 1;
}

function beside(result: Result): string {
  const advantage = advantageOf(result);
  if (Number.isNaN(advantage)) return "";
  const standing = standingOf(result);
  if (advantage < 1) return `**Another package is ahead**: ${standing}.`;
  if (advantage <= 1 + LEVEL) return `Holdfast is level with the best other package: ${standing}.`;
  return `Holdfast is ahead: ${standing}.`;
}

/** How many times better than the best of the other packages; NaN where there are none. */
function advantageOf({ question, standings }: Result): number {
  const [ours, peer] = (["holdfast", "peer"] as const).map((role) => {
    return bestOf(role, question.better, standings).median;
  }) as [number, number];
  return question.better === "lower" ? peer / ours : ours / peer;
}
