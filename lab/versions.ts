import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Subject } from "./subjects/subject.js";

/** The folder of the project: the compiled file is in lab/build/lab. */
export const PROJECT: string = join(import.meta.dirname, "..", "..", "..");

/** The histories of the last runs, all with unexpected verdicts, the verdicts of repeated runs. */
export const HISTORIES: string = join(PROJECT, "lab", "build", "histories");
/** The recorded histories, from which `npm run lab:report` makes the pages. */
export const RECORDED: string = join(PROJECT, "lab", "histories.jsonl");
export const UNEXPECTED: string = join(HISTORIES, "unexpected");
export const RUNS: string = join(PROJECT, "lab", "build", "runs.jsonl");

/** The folder of the packages that the subjects of family "peer" use. */
export const PEERS: string = join(PROJECT, "bench");

/** The versions of Node and of the packages that the subject uses. */
export function versionsOf({ family, packages }: Subject): Record<string, string> {
  const versions = packages.map((name) => {
    const home = family === "peer" && name !== "ioredis" ? PEERS : PROJECT;
    const file = name === "holdfast" ? PROJECT : join(home, "node_modules", name);
    // A package may be installed under another name, and a version may begin with a letter.
    const found = JSON.parse(readFileSync(join(file, "package.json"), "utf8"));
    return [String(found.name), String(found.version).replace(/^v/, "")];
  });
  return { node: process.versions.node, ...Object.fromEntries(versions) };
}
