import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { type ControlledProcess, startProcess } from "../faults/process.js";
import { waitUntil } from "../servers/wait-until.js";

/** Processes that contend for one lock and write down when they trust their leases. */
export class Contenders implements AsyncDisposable {
  readonly processes: ControlledProcess[] = [];
  readonly #folder = mkdtempSync(join(tmpdir(), "holdfast-contenders-"));
  readonly #files: string[] = [];
  readonly #url: string;
  readonly #name: string;

  constructor(url: string, name: string) {
    this.#url = url;
    this.#name = name;
  }

  /** Starts one more process. Resolves when it contends. */
  async start(workers: number, ttlMs: number): Promise<ControlledProcess> {
    const file = join(this.#folder, `${this.#files.length}`);
    this.#files.push(file);
    const args = [this.#url, this.#name, file, `${workers}`, `${ttlMs}`];
    const started = startProcess(new URL("./contender.mjs", import.meta.url), { args });
    this.processes.push(started);
    await started.receive((message) => message === "ready");
    return started;
  }

  /** When each grant was first trusted, in microseconds of the monotonic clock, in order. */
  turnsUs(): number[] {
    return [...this.#beliefs().values()].map(({ first }) => first).sort((a, b) => a - b);
  }

  /** Resolves when some process has had some turns. */
  async untilMoreTurns(): Promise<void> {
    const before = this.#beliefs().size;
    await waitUntil(() => this.#beliefs().size > before + 10, {
      what: "more turns",
    });
  }

  /** Ends all processes in an orderly way. */
  async end(): Promise<void> {
    for (const one of this.processes) if (one.running) await one.send({ end: true });
    for (const one of this.processes) await one.exited;
  }

  /** Checks that no two leases overlap and that later ones have higher tokens. */
  expectOneAtATime(): void {
    const ordered = [...this.#beliefs()].sort(([a], [b]) => (a < b ? -1 : 1));
    const violations: string[] = [];
    for (const [at, [token, { first }]] of ordered.entries()) {
      const before = ordered[at - 1];
      if (before && before[1].last >= first) violations.push(`${before[0]} and ${token}`);
    }
    expect(violations).toEqual([]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of this.processes.splice(0)) await one[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true });
  }

  /** For each token, the times at which a process trusted its lease. */
  #beliefs(): Map<bigint, { first: number; last: number; by: string }> {
    const found = new Map<bigint, { first: number; last: number; by: string }>();
    for (const by of this.#files) {
      // A line that a kill cut off is ignored.
      for (const [, token = "", us] of readFileSync(by, "utf8").matchAll(/^(\d+) (\d+)\n/gm)) {
        const one = found.get(BigInt(token)) ?? { first: Number(us), last: 0, by };
        expect(one.by, "a token belongs to one process").toBe(by);
        found.set(BigInt(token), { ...one, last: Number(us) });
      }
    }
    return found;
  }
}
