import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { join } from "node:path";
import type { Goal, Question, Standing } from "./contest.js";

/** One answered question, as it is kept. */
export interface Result {
  readonly question: {
    readonly store: string;
    readonly name: string;
    readonly title: string;
    readonly about?: string;
    readonly unit: string;
    readonly better: "lower" | "higher";
  };
  readonly standings: readonly Standing[];
  readonly goals: readonly Goal[];
  readonly isQuick: boolean;
  readonly takenAt: string;
  readonly tookMs?: number;
  /** The part of the processor time that the host gave to other machines meanwhile. */
  readonly stolen?: number | null;
  readonly machine: Readonly<Record<string, string | number>>;
  readonly versions: Readonly<Record<string, string>>;
}

/** All results of full runs: a file for each store, with a line of JSON for each question. */
export function keptResults(folder: string): readonly Result[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith(".jsonl") && !file.endsWith(".quick.jsonl"))
    .sort()
    .flatMap((file) => resultsIn(join(folder, file)));
}

function resultsIn(file: string): readonly Result[] {
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

/** The machines that gave the results, in words, each once. */
export function machinesOf(results: readonly Result[]): string {
  const machines = results.map(({ machine: { cpu, cores, memoryGiB } }) => {
    return `${cores} cores of ${cpu} and ${memoryGiB} GiB`;
  });
  return [...new Set(machines)].join(", or ");
}

/** Writes one result beside the others; a quick run never replaces a full one. */
export function writeResult(
  folder: string,
  question: Question,
  standings: readonly Standing[],
  goals: readonly Goal[],
  run: Pick<Result, "isQuick" | "tookMs" | "stolen">,
): void {
  const { store, name, title, about, unit, better } = question;
  const result: Result = {
    question: { store, name, title, about, unit, better },
    standings,
    goals,
    ...run,
    takenAt: new Date().toISOString(),
    machine: machine(),
    versions: {
      ...versions(join(folder, "..")),
      ...(standings.some(({ role }) => role === "foreign") ? foreignVersions(folder) : {}),
    },
  };
  mkdirSync(folder, { recursive: true });
  const file = fileOf(folder, question, run.isQuick);
  const others = resultsIn(file).filter((one) => one.question.name !== name);
  const all = [...others, result].sort((a, b) => (a.question.name < b.question.name ? -1 : 1));
  writeFileSync(file, all.map((one) => `${JSON.stringify(one)}\n`).join(""));
}

/** How long a question took the last time; NaN if it is not known. */
export function lastTookMs(folder: string, question: Question, isQuick: boolean): number {
  const last = resultsIn(fileOf(folder, question, isQuick)).find((one) => {
    return one.question.name === question.name;
  });
  return last?.tookMs ?? Number.NaN;
}

function fileOf(folder: string, { store }: Question, isQuick: boolean): string {
  return join(folder, `${store}${isQuick ? ".quick" : ""}.jsonl`);
}

function machine(): Record<string, string | number> {
  const [cpu] = cpus();
  return {
    cpu: cpu?.model.trim() ?? "unknown",
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
  };
}

function versions(bench: string): Record<string, string> {
  const { packages } = JSON.parse(readFileSync(join(bench, "package-lock.json"), "utf8"));
  const { dependencies } = JSON.parse(readFileSync(join(bench, "package.json"), "utf8"));
  const own = JSON.parse(readFileSync(join(bench, "..", "package.json"), "utf8"));
  const found: Record<string, string> = { holdfast: own.version };
  for (const name of Object.keys(dependencies)) {
    found[name] = packages[`node_modules/${name}`]?.version ?? "";
  }
  return found;
}

/** Where the packages of other languages are named with their versions. */
const FOREIGN: readonly (readonly [file: string, line: RegExp])[] = [
  ["go/go.mod", /^\t(\S+) v(\S+)$/gm],
  ["java/pom.xml", /<artifactId>(redisson|curator-recipes)<\/artifactId>\s*<version>([\d.]+)/g],
  ["python/requirements.txt", /^(\S+)==(\S+)$/gm],
];

function foreignVersions(folder: string): Record<string, string> {
  const found = FOREIGN.flatMap(([file, line]) => {
    const text = readFileSync(join(folder, "..", "languages", file), "utf8");
    const language = file.replace(/\/.*/, "");
    return [...text.matchAll(line)].map(([, name, version]) => [`${name} (${language})`, version]);
  });
  return Object.fromEntries(found);
}
