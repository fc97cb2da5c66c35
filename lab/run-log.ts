import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { History, VerdictKind } from "./history.js";
import type { Cell } from "./matrix.js";

/** The verdict of one trial. */
export interface Sighting {
  /** The ids of both. */
  readonly subject: string;
  readonly fault: string;
  readonly kind: VerdictKind;
  /** ISO 8601. */
  readonly startedAt: string;
}

/** The verdicts of many runs in a file, a line for each, so that runs that were cut go on. */
export class RunLog {
  readonly #file: string;
  readonly #sightings: Sighting[];

  constructor(file: string, { resumes }: { readonly resumes: boolean }) {
    this.#file = file;
    this.#sightings = resumes ? sightingsIn(file) : [];
    mkdirSync(dirname(file), { recursive: true });
    // Writes a line that was cut away, too.
    writeFileSync(file, this.#sightings.map(lineOf).join(""));
  }

  get sightings(): readonly Sighting[] {
    return this.#sightings;
  }

  add({ subject, fault, verdict, startedAt }: History): void {
    const sighting = { subject, fault, kind: verdict.kind, startedAt };
    this.#sightings.push(sighting);
    appendFileSync(this.#file, lineOf(sighting));
  }

  /** The trials that are missing for so many runs of all cells, run by run. */
  missing(cells: readonly Cell[], runs: number): Cell[] {
    const taken = new Map<string, number>();
    for (const { subject, fault } of this.#sightings) {
      const id = `${subject} ${fault}`;
      taken.set(id, (taken.get(id) ?? 0) + 1);
    }
    return Array.from({ length: runs }, (_, run) =>
      cells.filter(({ subject, fault }) => (taken.get(`${subject.id} ${fault.id}`) ?? 0) <= run),
    ).flat();
  }
}

const lineOf = (sighting: Sighting): string => `${JSON.stringify(sighting)}\n`;

/** The sightings of a file. The last line may be half a line: its process was killed. */
export function sightingsIn(file: string): Sighting[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n");
  return lines.slice(0, -1).map((line) => JSON.parse(line));
}
