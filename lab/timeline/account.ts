import type { Entry, History } from "../history.js";

/** The history in words, a sentence for each entry. */
export function account({ lanes, entries, verdict }: History): string[] {
  const titles = new Map(lanes.map(({ id, title }) => [id, title]));
  const named = (lane: string): string => titles.get(lane) ?? `the ${lane}`;
  const sentences = entries.map((entry) => {
    return `${(entry.atMs / 1000).toFixed(3)} s: ${sentence(entry, named)}.`;
  });
  return [...sentences, `Verdict: ${verdict.text}.`];
}

function sentence(entry: Entry, named: (lane: string) => string): string {
  if (entry.type === "truth") {
    if (entry.holder === null) return "in the store the lock is free";
    if (entry.holder === "ghost") return "in the store the lock is held by no process";
    return `in the store the lock is held by ${named(entry.holder)}${tokenOf(entry)}`;
  }
  const lane = named(entry.lane);
  switch (entry.type) {
    case "asks":
      return `${lane} asks for the lock`;
    case "believes":
      return `${lane} believes that it holds the lock${tokenOf(entry)}`;
    case "refused":
      return `${lane} gives up: ${entry.why}`;
    case "worksFrom":
      return `${lane} begins to work`;
    case "worksTo":
      return `${lane} ends its work`;
    case "releases":
      return `${lane} releases the lock`;
    case "told":
      return `${lane} is told: ${entry.reason}`;
    case "disbelieves":
      return `${lane} stops believing: ${entry.why}`;
    case "writes":
      return `a write of ${lane}${tokenOf(entry)} is ${entry.isRefused ? "refused" : "accepted"}`;
    case "fault":
      return `fault at ${lane}: ${entry.text}`;
  }
}

function tokenOf({ token }: { readonly token?: string }): string {
  return token === undefined ? "" : `, token ${token}`;
}
