import { present } from "../errors/assert.js";

/** Returns the known word that a misspelt one most likely means; null if none is close. */
export function nearestWord(word: string, known: Iterable<string>): string | null {
  const given = word.toLowerCase();
  let nearest: string | null = null;
  // Accept at most one wrong letter in three.
  let least = Math.max(1, Math.floor(given.length / 3)) + 1;
  for (const candidate of known) {
    const distance = distanceOf(given, candidate.toLowerCase());
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

/** Counts a word that is part of a name, such as `ttl`, as one wrong letter. */
function distanceOf(given: string, candidate: string): number {
  if (given === candidate) return 0;
  const isPart = given.length > 2 && candidate.includes(given);
  return isPart ? 1 : editDistance(given, candidate);
}

/** The Damerau-Levenshtein distance: insertions, deletions, replacements and swaps of letters. */
function editDistance(from: string, to: string): number {
  let before: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let row = 1; row <= from.length; row += 1) {
    const next = [row];
    for (let at = 1; at <= to.length; at += 1) {
      const isSame = from[row - 1] === to[at - 1];
      const replaced = cell(last, at - 1) + (isSame ? 0 : 1);
      let least = Math.min(replaced, cell(last, at) + 1, cell(next, at - 1) + 1);
      const isSwap = row > 1 && from[row - 1] === to[at - 2] && from[row - 2] === to[at - 1];
      if (isSwap) least = Math.min(least, cell(before, at - 2) + 1);
      next.push(least);
    }
    before = last;
    last = next;
  }
  return cell(last, to.length);
}

function cell(row: readonly number[], at: number): number {
  return present(row[at], "a row has a cell for each letter");
}
