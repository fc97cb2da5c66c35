import { bestOf } from "./contest.js";
import type { Result } from "./results.js";
import { stolenText } from "./stolen-time.js";
import { fateOf, figure, markdown, rowsOf, timesFloor } from "./table.js";

/** The text of docs/benchmarks.md; a missed goal has the reason of its question. */
export function page(
  all: readonly Result[],
  reasonOf: (result: Result) => string | undefined = () => undefined,
): string {
  const stores = [...new Set(all.map(({ question }) => question.store))];
  const missed = all.flatMap((result) =>
    result.goals
      .filter(({ isMet }) => !isMet)
      .map((goal) => {
        const missed = `- ${nameOf(result)}: ${goal.text}; measured ${figure(goal.value)}.`;
        return [missed, reasonOf(result)].filter(Boolean).join(" ");
      }),
  );
  const behind = all.flatMap(comparison);
  return `# Benchmarks

![Holdfast beside the best of the other packages, a line for each question](benchmarks/summary.svg)

Every figure here was written by \`npm run bench:report\` from what \`npm run bench\` measured; none
is typed in. Run both to get your own. All contestants of a question run in turn, in mixed rounds,
on servers that the run starts for itself; the first round warms up and does not count, unless each
round starts processes of its own. What counts is the ratio within a question, not the figure:
machines differ, and this one is shared.

- \`npm run bench\` runs everything, \`npm run bench -- redis handoff\` a part; \`--quick\` is a
  first look, of less than a minute. \`--languages\` adds locks in Go, Java and Python.
- Questions that take many minutes run only when they are named:
  \`npm run bench -- redis million-leases\`.
- In the pictures a thin line shows the middle half of the rounds. Bars begin at zero; where figures
  lie far apart, the axis is logarithmic and has dots.
- Figures are medians of all rounds; spread: half of the middle half of the rounds, as a part of it.
- × floor: relative to the raw commands that no lock can do without, on the same client; for a lock
  in another language, on a client of that language.
- Client CPU, server CPU: processor time of all processes that lock, and of the servers. In
  commands: the time that Redis itself counts for scripts and commands.
- × best peer: relative to the best of the other packages in that question. They poll; here they do
  so more often than by their defaults, in their favour.
- A contestant that failed, or let two hold the lock at once, is shown as failed and has no figure.

## Goals missed

${missed.length > 0 ? missed.join("\n") : "None."}

## Where Holdfast is not ahead

Of the best of the other packages, goal or not:

${behind.length > 0 ? behind.join("\n") : "Nowhere."}

${stores.map((store) => section(store, all)).join("\n")}
## Other languages

${languages(all)}

## The machine and the versions

${machine(all)}
`;
}

/** A line when the best of the other packages has the better figure. */
function comparison(result: Result): string[] {
  const { question, standings } = result;
  const [ours, peer] = (["holdfast", "peer"] as const).map((role) =>
    bestOf(role, question.better, standings),
  );
  if (!ours || !peer || Number.isNaN(peer.median)) return [];
  const isNotBehind =
    question.better === "lower" ? ours.median <= peer.median : ours.median >= peer.median;
  if (isNotBehind) return [];
  const figures = [ours, peer].map(({ name, median }) => `${name} ${figure(median)}`);
  return [`- ${nameOf(result)}: ${figures.join(", ")} ${question.unit}.`];
}

/** The locks in other languages of all questions, each beside the raw commands of its language. */
function languages(all: readonly Result[]): string {
  const head = ["question", "contestant", "figure", "× its own floor", "× best peer on Node"];
  const rows = all.flatMap(({ question, standings }) => {
    const peer = bestOf("peer", question.better, standings);
    const foreign = standings.filter(({ role }) => role === "foreign");
    if (foreign.length === 0) return [];
    const ours = standings.filter(({ name }) => name === "holdfast");
    return [...ours, ...foreign].map((one) => [
      nameOf({ question }),
      one.name,
      one.failure === null
        ? `${figure(one.median)} ${question.unit}`
        : `${fateOf(one)}: ${one.failure}`,
      figure(timesFloor(one, standings)),
      figure(one.median / peer.median),
    ]);
  });
  if (rows.length === 0) return "Not in these results: `npm run bench -- --languages` has them.";
  return `A lock in another language runs on a client of that language, whose raw commands cost
something else: its own floor are the same raw commands on that client.

${markdown([head, ...rows])}`;
}

function section(store: string, all: readonly Result[]): string {
  const own = all.filter(({ question }) => question.store === store);
  return `## ${store}\n\n${own.map(part).join("\n")}`;
}

function part(result: Result): string {
  const { question, standings, goals } = result;
  const taken = `Taken ${result.takenAt.slice(0, 10)}${stolenText(result.stolen)}.`;
  const lines = goals.map(
    ({ text, value, isMet }) => `- ${isMet ? "met" : "**missed**"}: ${text} (${figure(value)})`,
  );
  return `### ${question.title}

${[question.about, taken].filter(Boolean).join(" ")}

![${question.store}: ${question.title}](benchmarks/${pictureOf(result)})

${markdown(rowsOf(question, standings))}

${lines.join("\n")}
`;
}

function machine(all: readonly Result[]): string {
  const list = (items: Readonly<Record<string, string | number>>): string =>
    Object.entries(items)
      .map(([name, value]) => `${name} ${value}`)
      .join(", ");
  // A package that only some of the questions used is in their results alone.
  const versions = Object.assign({}, ...all.map((result) => result.versions));
  return `${list(all[0]?.machine ?? {})}.\n\nPackages: ${list(versions)}.`;
}

export function pictureOf({ question }: Result): string {
  return `${question.store}-${question.name}.svg`;
}

function nameOf({ question }: Pick<Result, "question">): string {
  return `${question.store}, ${question.title}`;
}
