import { bestOf } from "./contest.js";
import { meaningOf, placeOf } from "./meaning.js";
import { machinesOf, type Result } from "./results.js";
import { stolenText } from "./stolen-time.js";
import { fateOf, figure, markdown, rowsOf, timesFloor } from "./table.js";
import { behind, verdict } from "./verdict.js";

/** The text of docs/benchmarks.md, without the goals of the project. */
export function page(all: readonly Result[]): string {
  const stores = [...new Set(all.map(({ question }) => question.store))];
  const ahead = all.flatMap((one) =>
    behind(one) ? [`- **${nameOf(one)}**: ${behind(one)}.`] : [],
  );
  return `# Benchmarks

![Holdfast beside the best of the other packages, a line for each question](benchmarks/summary.svg)

A dot to the right of the line means that Holdfast, with its defaults, is better than the best of
the other packages in that question; a hatched dot means that another package is better. A question
without another package for Node, such as those of ZooKeeper, has no line. Below is each question,
with its meaning for you. Compare the figures of one question with each other: other machines give
other figures.

- [At a glance](#at-a-glance) · [where another package is ahead](#where-another-package-is-ahead) ·
  [how to read the tables](#how-to-read-the-tables) · [how it was measured](#how-it-was-measured)
- The questions of each store: ${stores.map((store) => `[${store}](#${store})`).join(" · ")}

## At a glance

${markdown(glance(all))}

Medians of Holdfast with its defaults, servers and clients on one machine. The rows come from
different runs, so they show the power of ten, not a ranking. An empty cell was not measured.
[Capacity](capacity.md) computes machines from these figures.

## Where another package is ahead

Each line has the best of the other packages first, then every variant of Holdfast that is behind
it. The [goals](#goals-of-the-project) at the end give the reasons that are known.

${ahead.length > 0 ? ahead.join("\n") : "Nowhere."}

## How to read the tables

- **spread**: half of the distance between the quartiles of all rounds, as a part of the median. A
  difference below it says little.
- **holdfast** has the default options; **strict** is \`fairness: "strict"\`; **on …** names the
  client package.
- **× floor**: relative to the raw commands that no lock can do without, on the same client; for a
  lock in another language, on a client of that language.
- **× best peer**: relative to the best of the other packages. They poll; here they do so more
  often than by their defaults, in their favour.
- **client CPU, server CPU**: processor time of all processes that lock, and of the servers. **In
  commands**: the time that Redis itself counts for scripts and commands.
- A contestant that failed, or let two hold the lock at once, is shown as failed and has no
  figure.

${stores.map((store) => section(store, all)).join("\n")}
${languages(all)}## How it was measured

Every figure here was written by \`npm run bench:report\` from what \`npm run bench\` measured;
none is typed in. All contestants of a question run in turn, in mixed rounds, on servers that the
run starts for itself. The first round warms up and does not count, unless each round starts
processes of its own. The machine is shared: what counts is the ratio within a question.

- \`npm run bench\` runs everything, \`npm run bench -- redis handoff\` a part; \`--quick\` is a
  first look, of less than a minute. \`--languages\` adds locks in Go, Java and Python.
- Questions that take many minutes run only when they are named, or with \`--all\`: \`npm run
  bench -- redis million-leases\`.

${machines(all)}
`;
}

/** The end of the page: the goals of the project that the figures miss, with the reason of each. */
export function missedGoals(
  all: readonly Result[],
  reasonOf: (result: Result) => string | undefined,
): string {
  const missed = all.flatMap((result) => {
    const goals = result.goals.filter(({ isMet }) => !isMet);
    if (goals.length === 0) return [];
    const texts = goals.map(({ text, value }) => `${text} (measured ${figure(value)})`);
    const reason = reasonOf(result);
    return [`- **${nameOf(result)}**: ${texts.join("; ")}.${reason ? ` ${reason}` : ""}`];
  });
  return `
## Goals of the project

The project sets itself goals, and \`npm run bench\` compares each run with them. These are missed:

${missed.length > 0 ? missed.join("\n") : "None."}
`;
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
  if (rows.length === 0) return "";
  return `## Other languages

A lock in another language runs on a client of that language, whose raw commands have a cost of
their own. "Its own floor" is the same raw commands on that client.

${markdown([head, ...rows])}

`;
}

function section(store: string, all: readonly Result[]): string {
  const own = all
    .filter(({ question }) => question.store === store)
    .sort((one, other) => placeOf(one.question.name) - placeOf(other.question.name));
  return `## ${store}\n\n${own.map(part).join("\n")}`;
}

function part(result: Result): string {
  const { question, standings } = result;
  const day = result.takenAt.slice(0, 10);
  const taken = `Taken ${day} on ${result.machine.cpu}${stolenText(result.stolen)}.`;
  const meaning = [meaningOf(question.name), verdict(result)].filter(Boolean).join(" ");
  return `### ${question.title.charAt(0).toUpperCase()}${question.title.slice(1)}

${[question.about, taken].filter(Boolean).join(" ")}
${meaning === "" ? "" : `\n**For you**: ${meaning}\n`}
${markdown(rowsOf(question, standings))}
`;
}

function machines(all: readonly Result[]): string {
  // A package that only some of the questions used is in their results alone.
  const versions: Record<string, string> = Object.assign({}, ...all.map((one) => one.versions));
  const packages = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  const nodes = [...new Set(all.map(({ machine }) => `${machine.node}`))];
  return `Machines: ${machinesOf(all)}; Node ${nodes.join(", ")}. Each question names its own.

Packages: ${packages.join(", ")}.`;
}

function nameOf({ question }: Pick<Result, "question">): string {
  return `${question.store}, ${question.title}`;
}

type Column = readonly [title: string, ...questions: string[]];

/** The figures that most readers look for, and the questions that have them. */
const COLUMNS: readonly Column[] = [
  ["acquire and release, µs", "uncontended"],
  ["the same at once, pairs/s", "many-names"],
  ["handoff to another process, ms", "handoff"],
  ["one busy name, grants/s", "one-name", "contention"],
];

/** A row for each store, with the figures of Holdfast. */
function glance(all: readonly Result[]): readonly string[][] {
  const stores = [...new Set(all.map(({ question }) => question.store))];
  const rows = stores.map((store) => {
    const own = all.filter(({ question }) => question.store === store);
    return [store, ...COLUMNS.map((column) => cell(own, column))];
  });
  return [["store", ...COLUMNS.map(([title]) => title)], ...rows];
}

function cell(own: readonly Result[], [title, ...questions]: Column): string {
  const found = questions.flatMap((name) => {
    const result = own.find(({ question }) => question.name === name);
    const ours = result?.standings.find((one) => one.name === "holdfast");
    return result && ours ? [inUnit(ours.median, result.question.unit, title)] : [];
  });
  return found[0] ?? "";
}

/** A store in this process counts pairs in a second instead of their time. */
function inUnit(value: number, unit: string, title: string): string {
  return figure(unit === "pairs/s" && title.endsWith("µs") ? 1e6 / value : value);
}
