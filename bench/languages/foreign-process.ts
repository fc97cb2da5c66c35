import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Report, Turns } from "../turns.js";

/** `tasks` at once, each with a name of its own and so many pairs of acquire and release. */
export interface PairsOrder {
  readonly do: "pairs";
  readonly lock: string;
  readonly tasks: number;
  readonly pairs: number;
}

export type TurnsOrder = { readonly do: "turns" } & Turns;

export interface Answer extends Report {
  readonly elapsedMs: number;
}

/** A process without an answer for so long is stuck: rueidislock was, with many names at once. */
const STUCK_MS = 60_000;

const running = new Set<ChildProcess>();

/** A contestant in another language: takes one order per line, and answers each with one. */
export class ForeignProcess {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  private constructor(child: ChildProcess) {
    this.#child = child;
    if (!child.stdout) throw new Error("the process has no output");
    this.#lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    running.add(child);
    child.once("exit", () => running.delete(child));
  }

  /** Resolves when the process is connected to its server. */
  static async start(
    command: readonly string[],
    candidate: string,
    address: string,
  ): Promise<ForeignProcess> {
    const [program = "", ...args] = command;
    const stdio = ["pipe", "pipe", "inherit"] as const;
    const child = spawn(program, [...args, candidate, address], { stdio: [...stdio] });
    await once(child, "spawn");
    const started = new ForeignProcess(child);
    await started.#answer();
    return started;
  }

  order(given: PairsOrder | TurnsOrder): Promise<Answer> {
    this.#child.stdin?.write(`${JSON.stringify(given)}\n`);
    const stuck = setTimeout(() => this.kill(), STUCK_MS);
    return this.#answer().finally(() => clearTimeout(stuck));
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  async #answer(): Promise<Answer> {
    const { done, value } = await this.#lines.next();
    if (done) throw new Error(`the process ended early, or was stuck for ${STUCK_MS} ms`);
    const answer = JSON.parse(value);
    if (answer.error) throw new Error(answer.error);
    // A worker that never got the lock may tell nothing instead of an empty list.
    return { ...answer, holds: (answer.holds ?? []).map((own: unknown) => own ?? []) };
  }
}

/** Before their servers go. */
export function endForeign(): void {
  for (const child of running) child.kill("SIGKILL");
}
