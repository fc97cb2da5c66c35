import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Request } from "./protocol.js";

export interface WorkerProcess {
  readonly label: string;
  readonly process: ChildProcess;
  state: "starting" | "waiting" | "HOLDS" | "killed" | "STOPPED";
}

export type OnRequest = (worker: WorkerProcess, request: Request) => number;

/** The worker processes, each with a letter. */
export class Workers {
  readonly list: WorkerProcess[] = [];
  readonly #env: NodeJS.ProcessEnv;
  readonly #onRequest: OnRequest;

  constructor(env: NodeJS.ProcessEnv, onRequest: OnRequest) {
    this.#env = env;
    this.#onRequest = onRequest;
  }

  add(): void {
    const label = String.fromCharCode(65 + this.list.length);
    const child = fork(fileURLToPath(new URL("./worker.js", import.meta.url)), {
      env: this.#env,
      execArgv: [],
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    const worker: WorkerProcess = { label, process: child, state: "starting" };
    child.on("message", (message) => {
      const { id, ...request } = message as Request & { id: number };
      const value = this.#onRequest(worker, request as Request);
      if (child.connected) child.send({ id, value }, () => {});
    });
    this.list.push(worker);
  }

  /** Ends them all, stopped ones included, and waits until they are gone. */
  async end(): Promise<void> {
    await Promise.all(
      this.list.map(async ({ process: child }) => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const gone = new Promise((resolve) => child.once("exit", resolve));
        child.kill("SIGKILL");
        await gone;
      }),
    );
  }
}
