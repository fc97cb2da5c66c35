/** Runs many trials, several at a time. */
import type { Fault } from "./faults/fault.js";
import type { History } from "./history.js";
import { Processes } from "./processes.js";
import type { Subject } from "./subjects/subject.js";
import { runTrial } from "./trial.js";

export interface Cell {
  readonly subject: Subject;
  readonly fault: Fault;
}

export interface Outcome extends Cell {
  /** Null where the trial itself failed. */
  readonly history: History | null;
  readonly error?: unknown;
}

/** The cells that a fault can happen to. */
export function cellsOf(subjects: readonly Subject[], faults: readonly Fault[]): Cell[] {
  return subjects
    .flatMap((subject) => faults.map((fault) => ({ subject, fault })))
    .filter((cell) => exemptionOf(cell) === null);
}

/** The reason for which the fault cannot happen to the subject; null if it can. */
export function exemptionOf({ subject, fault }: Cell): string | null {
  if (fault.needsServer && subject.place === "folder") return "it has no server and no network";
  return fault.exempts?.(subject) ?? null;
}

/** `jobs` trials run at a time, on servers and ports of their own. */
export async function runAll(
  cells: readonly Cell[],
  jobs: number,
  onOutcome: (outcome: Outcome) => void,
): Promise<void> {
  const left = [...cells];
  await using processes = new Processes();
  const work = async (): Promise<void> => {
    for (let cell = left.shift(); cell; cell = left.shift()) {
      onOutcome(await outcomeOf(cell, processes));
    }
  };
  await Promise.all(Array.from({ length: jobs }, work));
}

async function outcomeOf({ subject, fault }: Cell, processes: Processes): Promise<Outcome> {
  try {
    return { subject, fault, history: await runTrial(subject, fault, processes) };
  } catch (error) {
    return { subject, fault, history: null, error };
  }
}
