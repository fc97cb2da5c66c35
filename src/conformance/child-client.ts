import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { ChildCall, ChildMessage, ChildVerbs } from "./child-verbs.js";
import type { Harness } from "./harness.js";
import { PATIENCE_MS, until, within } from "./patience.js";

/** How a process ended, and what it printed. */
export interface ChildExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly output: string;
}

/** An error that the child process threw. */
export class ChildError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(`in a child process: ${message}`);
    this.code = code;
  }
}

type Lost = Extract<ChildMessage, { type: "lost" }>;

interface Pending {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** Child processes that run. They end with this process, or they would keep their locks. */
/** Where the system does not show it, a process has stopped after this time. */
const STOP_MS = 500;

const alive = new Set<ChildProcess>();

function killAll(): void {
  for (const child of alive) child.kill("SIGKILL");
}

/** A client of the locks in a child process, which a case calls, stops and kills. */
export class ChildClient {
  readonly #process: ChildProcess;
  readonly #pending = new Map<number, Pending>();
  readonly #lost: Lost[] = [];
  readonly exited: Promise<ChildExit>;
  #output = "";
  #calls = 0;

  private constructor(child: ChildProcess) {
    this.#process = child;
    if (alive.size === 0) process.once("exit", killAll);
    alive.add(child);
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.#output += text;
      });
    }
    child.on("message", (message) => this.#onMessage(message as ChildMessage));
    // "close" comes after the last output. A call without an answer by then never gets one.
    this.exited = once(child, "close").then(([code, signal]) => {
      alive.delete(child);
      if (alive.size === 0) process.off("exit", killAll);
      const output = this.#output;
      const error = new Error(`The child process ended (${signal ?? code}).\n${output}`);
      for (const { reject } of this.#pending.values()) reject(error);
      this.#pending.clear();
      return { code, signal, output };
    });
  }

  static async start({ child }: Harness, namespace: string): Promise<ChildClient> {
    assert.ok(child, "the harness has no child");
    const argument = child.argument(namespace);
    const start = JSON.stringify({ module: String(child.module), argument });
    const client = new ChildClient(
      fork(programFile(), [start], {
        execArgv: [],
        serialization: "advanced",
        stdio: ["ignore", "pipe", "pipe", "ipc"],
      }),
    );
    await within(PATIENCE_MS, "a child process starts", client.#call(0));
    return client;
  }

  get isRunning(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null;
  }

  /** Calls a verb in the child process, and resolves with its result. */
  call<V extends keyof ChildVerbs>(
    verb: V,
    ...args: Parameters<ChildVerbs[V]>
  ): ReturnType<ChildVerbs[V]> {
    const id = ++this.#calls;
    const answer = this.#call(id);
    // A case that kills the process drops its calls: their rejection is not unhandled.
    answer.catch(() => undefined);
    const call: ChildCall = { id, verb, args };
    this.#process.send(call, (error) => {
      if (error) this.#pending.get(id)?.reject(error);
    });
    return answer as ReturnType<ChildVerbs[V]>;
  }

  /** Calls a verb that sends no answer. */
  tell<V extends "leave" | "leaveWaiting" | "stop">(
    verb: V,
    ...args: Parameters<ChildVerbs[V]>
  ): void {
    this.#process.send({ id: 0, verb, args } satisfies ChildCall);
  }

  /** Resolves when the child process has lost the lease, with the time and the reason. */
  lost(token: bigint): Promise<Lost> {
    return until("the child process reports the loss of its lease", () =>
      this.#lost.find((lost) => lost.token === token),
    );
  }

  /**
   * Lets the process stop itself, and resolves when it has stopped. It does so between two steps
   * of its code: one that stops inside a transaction of the store could block every other client.
   */
  async stop(): Promise<void> {
    this.tell("stop");
    const stat = `/proc/${this.#process.pid}/stat`;
    if (!existsSync(stat)) return await sleep(STOP_MS);
    await until("the child process stops", () => /\) T/.test(readFileSync(stat, "utf8")));
  }

  /** Sends SIGCONT. */
  resume(): void {
    const { pid } = this.#process;
    assert.ok(pid, "the child process has started");
    // In Deno, `kill` of a child closes the channel to it, whatever the signal is.
    process.kill(pid, "SIGCONT");
  }

  /** Sends SIGKILL, and resolves when the process has ended. */
  async kill(): Promise<ChildExit> {
    this.#process.kill("SIGKILL");
    return this.exited;
  }

  #call(id: number): Promise<unknown> {
    return new Promise((resolve, reject) => this.#pending.set(id, { resolve, reject }));
  }

  #onMessage(message: ChildMessage): void {
    if (message.type === "lost") {
      this.#lost.push(message);
      return;
    }
    const id = message.type === "ready" ? 0 : message.id;
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (message.type === "error") pending?.reject(new ChildError(message.code, message.message));
    else pending?.resolve(message.type === "value" ? message.value : undefined);
  }
}

/** Child processes run on plain node, so tests of the sources start the built program too. */
function programFile(): string {
  const built = import.meta.url.endsWith(".ts")
    ? new URL("../../dist/conformance/child.js", import.meta.url)
    : new URL("./child.js", import.meta.url);
  const file = fileURLToPath(built);
  assert.ok(existsSync(file), `${file} is missing: child processes need the build (npm run build)`);
  return file;
}
