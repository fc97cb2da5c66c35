import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Request } from "./protocol.js";

export interface Actor {
  readonly label: string;
  readonly process: ChildProcess;
  state: "starting" | "waiting" | "HOLDS" | "killed" | "STOPPED";
}

export type OnRequest = (actor: Actor, request: Request) => number;

/** The worker processes, each with a letter. */
export class Troupe {
  readonly actors: Actor[] = [];
  readonly #env: NodeJS.ProcessEnv;
  readonly #onRequest: OnRequest;

  constructor(env: NodeJS.ProcessEnv, onRequest: OnRequest) {
    this.#env = env;
    this.#onRequest = onRequest;
  }

  add(): Actor {
    const label = String.fromCharCode(65 + this.actors.length);
    const child = fork(fileURLToPath(new URL("./worker.js", import.meta.url)), {
      env: this.#env,
      execArgv: [],
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    const actor: Actor = { label, process: child, state: "starting" };
    child.on("message", (message) => {
      const { id, ...request } = message as Request & { id: number };
      const value = this.#onRequest(actor, request as Request);
      if (child.connected) child.send({ id, value }, () => {});
    });
    this.actors.push(actor);
    return actor;
  }

  /** Ends them all, stopped ones included, and waits until they are gone. */
  async dismiss(): Promise<void> {
    await Promise.all(
      this.actors.map(async ({ process: child }) => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const gone = new Promise((resolve) => child.once("exit", resolve));
        child.kill("SIGKILL");
        await gone;
      }),
    );
  }
}
