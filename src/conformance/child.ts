/**
 * The program of a child process. Its only argument is JSON: the module that opens the store, and
 * the argument of its `openStore`. The program answers calls of the parent until it is killed or
 * told to leave.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Holdfast } from "../api/holdfast.js";
import type { Store } from "../contract/store.js";
import { HoldfastError, type LeaseLostError } from "../errors/index.js";
import type { Lease } from "../lease/lease.js";
import type { Lock } from "../locks/lock.js";
import type {
  ChildCall,
  ChildMessage,
  ChildOptions,
  ChildVerbs,
  LockChoice,
} from "./child-verbs.js";
import { machineMs } from "./patience.js";
import { countUp } from "./shared-counter.js";
import { warmUp } from "./warm-up.js";

const REST_MS = 50;

class ChildProgram implements ChildVerbs {
  readonly #locks: Holdfast;
  readonly #leases = new Map<bigint, Lease>();

  constructor(locks: Holdfast) {
    this.#locks = locks;
  }

  warmUp(): Promise<void> {
    return warmUp(this.#locks);
  }

  async acquire(choice: LockChoice, options?: ChildOptions): Promise<bigint> {
    if (choice.kind === "election") {
      return this.#keep(await this.#locks.election(choice.name).campaign(options));
    }
    return this.#keep(await this.#lock(choice).acquire(options));
  }

  async tryAcquire(choice: LockChoice, options?: ChildOptions): Promise<bigint | null> {
    const lease = await this.#lock(choice).tryAcquire(options);
    return lease && this.#keep(lease);
  }

  release(token: bigint): Promise<boolean> {
    return this.#lease(token).release();
  }

  async report(token: bigint): ReturnType<ChildVerbs["report"]> {
    const lease = this.#lease(token);
    let assertion: string | null = null;
    try {
      lease.assertHeld();
    } catch (error) {
      assertion = codeOf(error);
    }
    return { state: lease.state, remainingMs: lease.remainingMs(), assertion };
  }

  async detach(token: bigint): Promise<string> {
    return this.#lease(token).detach();
  }

  async resume(handle: string): Promise<bigint | null> {
    const lease = await this.#locks.resume(handle);
    return lease && this.#keep(lease);
  }

  count(choice: LockChoice, file: string, contenders: number): ReturnType<ChildVerbs["count"]> {
    const lock = this.#lock(choice);
    return Promise.all(Array.from({ length: contenders }, () => countUp(lock, file)));
  }

  close(): Promise<void> {
    return this.#locks.close();
  }

  async stop(): Promise<void> {
    await sleep(REST_MS);
    process.kill(process.pid, "SIGSTOP");
  }

  async leave(): Promise<void> {
    hangUp();
  }

  async leaveWaiting(choice: LockChoice, holder: bigint, afterMs: number): Promise<void> {
    const granted = this.#lock(choice).acquire({ fairness: "strict" });
    // The timer is unreferenced: it fires only if the waiting acquire keeps the process alive.
    setTimeout(() => void this.release(holder), afterMs).unref();
    hangUp();
    await granted;
    process.stdout.write("granted\n");
    await this.#locks.close();
  }

  #lock({ kind, name, limit = 1 }: LockChoice): Lock {
    switch (kind) {
      case "read":
        return this.#locks.readWrite(name).read;
      case "write":
        return this.#locks.readWrite(name).write;
      case "semaphore":
        return this.#locks.semaphore(name, limit);
      default:
        return this.#locks.mutex(name);
    }
  }

  #keep(lease: Lease): bigint {
    const { token, signal } = lease;
    this.#leases.set(token, lease);
    signal.addEventListener("abort", () => {
      const { reason } = signal.reason as LeaseLostError;
      tell({ type: "lost", token, reason, atMs: machineMs() });
    });
    return token;
  }

  #lease(token: bigint): Lease {
    const lease = this.#leases.get(token);
    if (!lease) throw new Error(`There is no lease with token ${token} in this process.`);
    return lease;
  }
}

function tell(message: ChildMessage): void {
  if (process.connected) process.send?.(message);
}

/** Ends the process when the parent is gone, unless the process itself disconnected. */
const onDisconnect = (): void => process.exit(1);

function hangUp(): void {
  process.off("disconnect", onDisconnect);
  process.disconnect();
}

function codeOf(error: unknown): string {
  if (error instanceof HoldfastError) return error.code;
  return error instanceof Error ? error.name : "unknown";
}

async function answer(program: ChildProgram, { id, verb, args }: ChildCall): Promise<void> {
  try {
    const call = program[verb] as (...args: unknown[]) => Promise<unknown>;
    tell({ type: "value", id, value: await call.apply(program, [...args]) });
  } catch (error) {
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
    tell({ type: "error", id, code: codeOf(error), message });
  }
}

const { module, argument } = JSON.parse(process.argv[2] ?? "{}");
const { openStore } = (await import(module)) as {
  openStore(argument: unknown): Store | Promise<Store>;
};
const program = new ChildProgram(new Holdfast(await openStore(argument)));
process.on("disconnect", onDisconnect);
process.on("message", (call) => void answer(program, call as ChildCall));
tell({ type: "ready" });
