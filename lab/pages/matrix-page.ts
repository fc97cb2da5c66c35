import { type Agreement, summaryOf } from "../agreement.js";
import { exceptions } from "../expected.js";
import type { History, Verdict, VerdictKind } from "../history.js";
import { duration } from "../timeline/scale.js";
import { isGood } from "../timeline/svg.js";

interface Named {
  readonly id: string;
  readonly title: string;
}

interface Row extends Named {
  readonly family: string;
}

/** All that docs/lab.md is made of. */
export interface Matrix {
  readonly subjects: readonly Row[];
  readonly faults: readonly Named[];
  readonly histories: readonly History[];
  readonly agreement: Agreement;
  /** The reason for which a fault cannot happen to a subject; null if it can. */
  exemptionOf(subject: string, fault: string): string | null;
}

const FAMILIES = [
  {
    family: "ladder",
    title: "The ladder",
    about: "Programs of a few lines, each right up to its rung.",
  },
  {
    family: "holdfast",
    title: "Holdfast",
    about: `The stores, with their defaults, but for the memory store, which is of one process. Each
✗ is an exception that the table "What survives what" of the store's page has, too; they are listed
below the table. The late write after a last check gets past every lock; a
[fence](guide.md#fencing) refuses it.`,
  },
  {
    family: "peer",
    title: "Other packages",
    about: "With their own defaults, as their documentation recommends.",
  },
] as const;

const MEANINGS: Readonly<Record<VerdictKind, string>> = {
  held: "one at a time, and the lock came free when it had to",
  "told in time": "a holder lost the lock, and stopped before the next one began",
  "told late": "a holder lost the lock and was told, when the next one worked already",
  "two held": "two worked at once, and neither was told",
  stuck: "no process held the lock, and a process that asked did not get it",
  ghost: "stuck behind a value in the store that belongs to no process",
  overtaken: "a process that asked later had the lock before one that waited",
};

const KINDS = [
  "held",
  "told in time",
  "told late",
  "two held",
  "stuck",
  "ghost",
  "overtaken",
] as const;

/** The name of the files of a trial, without their ending. */
export const fileOf = ({ subject, fault }: Pick<History, "subject" | "fault">): string =>
  `${subject}.${fault}`;

/** The text of docs/lab.md. */
export function matrixPage(matrix: Matrix): string {
  return `# The lab

Every cell is a trial on real servers with real processes and a real fault: killed, stopped, cut
off, delayed, restarted. \`npm run lab:report\` writes this page from the recorded histories in
\`lab/histories.jsonl\`, and draws each of them in \`lab/build/pictures\`. Each trial can be
repeated by its command. [The ladder](ladder.md) explains the rungs one by one.

${table([
  ["verdict", "meaning"],
  ...KINDS.map((kind) => [`${signOf(kind)} ${kind}`, MEANINGS[kind]]),
])}

A time says how long two held, or how long the lock was stuck; ∞ means forever. A dash: the fault
cannot happen to that subject; the reason is below. An empty cell: not tried.

${FAMILIES.map((family) => familyPart(family, matrix)).join("\n")}
## Take a trial again

\`npm run lab -- SUBJECT FAULT\` runs one trial; with \`--open\` it also writes a page with the
program, the picture and the lines that cure it. \`npm run lab -- --all\` runs all of them, and
\`npm run lab -- --runs 20\` the ladder and Holdfast twenty times.

${FAMILIES.map((family) => agreementPart(family, matrix))
  .filter((part) => part !== "")
  .join("\n")}

${matrix.subjects
  .map((subject) => subjectPart(subject, matrix))
  .filter((part) => part !== "")
  .join("\n")}`;
}

function familyPart({ family, title, about }: (typeof FAMILIES)[number], matrix: Matrix): string {
  const tested = matrix.subjects.filter((one) => {
    return one.family === family && matrix.histories.some(({ subject }) => subject === one.id);
  });
  if (tested.length === 0) return "";
  const head = ["fault", ...tested.map((subject) => escapedCell(subject.title))];
  const rows = matrix.faults.map((fault) => [
    escapedCell(fault.title),
    ...tested.map(({ id }) => cell(id, fault.id, matrix)),
  ]);
  return `## ${title}

${about}

${table([head, ...rows])}
${family === "holdfast" ? exceptionsPart(tested) : ""}`;
}

/** The cells in which a store need not hold, and the row of its page that says so. */
function exceptionsPart(subjects: readonly Row[]): string {
  const rows = subjects.flatMap(({ id, title }) =>
    Object.entries(exceptions[id] ?? {}).map(([fault, { kind, page, event }]) => {
      return [title, fault, kind, `[${page}](stores/${page}.md#what-survives-what): ${event}`];
    }),
  );
  if (rows.length === 0) return "";
  return `\n${table([["store", "fault", "may be", "row of its page"], ...rows])}\n`;
}

/** How many runs of each trial agree. */
function agreementPart(
  { family, title }: (typeof FAMILIES)[number],
  { subjects, agreement }: Matrix,
): string {
  const { trials, agreed, fewestRuns, divided } = summaryOf(agreement, (subject) => {
    return subjects.some(({ id, family: own }) => id === subject && own === family);
  });
  if (trials === 0) return "";
  const [from, to] = [agreement.from, agreement.to].map((time) => time.slice(0, 10));
  const days = from === to ? `on ${from}` : `from ${from} to ${to}`;
  const head = `${title}: ${trials} trials, each at least ${fewestRuns} times, ${days}; in ${agreed}
of them all runs have the same verdict.`;
  if (divided.length === 0) return `${head}\n`;
  return `${head} The others:\n\n${divided.map(([id, text]) => `- ${id}: ${text}`).join("\n")}\n`;
}

function cell(subject: string, fault: string, matrix: Matrix): string {
  const history = find(matrix, subject, fault);
  if (history) return shortVerdict(history.verdict);
  return matrix.exemptionOf(subject, fault) === null ? "" : "–";
}

/** `✗ two held 350 ms`, `✗ stuck ∞`, `✓ held`. */
export function shortVerdict({ kind, ms }: Verdict): string {
  const time = ms === null ? " ∞" : ms === undefined || ms === 0 ? "" : ` ${duration(ms)}`;
  return `${signOf(kind)} ${kind}${time}`;
}

function signOf(kind: VerdictKind): string {
  return isGood(kind) ? "✓" : "✗";
}

function subjectPart({ id, title }: Named, matrix: Matrix): string {
  const own = matrix.histories.filter(({ subject }) => subject === id);
  const [first] = own;
  if (!first) return "";
  const versions = Object.entries(first.versions).map(([name, version]) => `${name} ${version}`);
  const trials = matrix.faults.flatMap((fault) => {
    const history = find(matrix, id, fault.id);
    if (!history) return [];
    const { verdict, command } = history;
    return [[fault.id, escapedCell(verdict.text), `\`${command}\``]];
  });
  const exempt = matrix.faults.flatMap((fault) => {
    const reason = matrix.exemptionOf(id, fault.id);
    return reason === null ? [] : [`- ${fault.id}: ${reason}`];
  });
  return `### ${title}

${versions.join(", ")}; ttl ${ttlOf(own)}; taken ${first.startedAt.slice(0, 10)}.

${table([["fault", "verdict", "command"], ...trials])}
${exempt.length === 0 ? "" : `\nCannot happen here:\n\n${exempt.join("\n")}\n`}`;
}

/** Some faults need longer leases, and a busy machine makes them longer. */
function ttlOf(histories: readonly History[]): string {
  const all = histories.map(({ ttlMs }) => ttlMs);
  const [least, most] = [Math.min(...all), Math.max(...all)];
  return least === most ? duration(least) : `${duration(least)} to ${duration(most)}`;
}

function find({ histories }: Matrix, subject: string, fault: string): History | undefined {
  return histories.find((history) => history.subject === subject && history.fault === fault);
}

function table([head = [], ...rows]: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

function escapedCell(text: string): string {
  return text.replace(/[\\|[\]<>*_`]/g, "\\$&").replace(/\s+/g, " ");
}
