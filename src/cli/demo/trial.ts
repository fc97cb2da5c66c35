import type { Holdfast } from "../../api/holdfast.js";
import type { LockView } from "../../contract/store.js";
import { LOCK_NAME, type Request } from "./protocol.js";
import type { Screen } from "./screen.js";
import { type WorkerProcess, Workers } from "./workers.js";

const LOOK_MS = 50;
const PATIENCE_MS = 20_000;

/** One run of the workers, with or without the lock, and its figures. */
export class Trial {
  readonly counter: Counter = new Counter();
  /** Tokens whose late writes the counter refused. */
  readonly refused: { readonly token: bigint; readonly by: bigint }[] = [];
  /** How many grants had a token that was not above all earlier ones. */
  disorder = 0;
  grants = 0;
  readonly #screen: Screen;
  readonly #locks: Holdfast | null;
  readonly #workers: Workers;
  #holder: WorkerProcess | null = null;
  /** Called once, when the next holder reads: it is killed or stopped before it writes. */
  #onHolderReads: ((worker: WorkerProcess) => void) | null = null;
  #signalledMs = 0;

  constructor(store: string, screen: Screen, locks: Holdfast | null) {
    this.#screen = screen;
    this.#locks = locks;
    const mode = locks ? "locked" : "unlocked";
    const env = { ...process.env, HOLDFAST_STORE: store, HOLDFAST_DEMO: mode };
    this.#workers = new Workers(env, (worker, request) => this.#answer(worker, request));
  }

  start(workers: number): void {
    for (let count = 0; count < workers; count += 1) this.#workers.add();
  }

  async end(): Promise<void> {
    await this.#workers.end();
  }

  /** Kills the next holder with SIGKILL. Resolves with the time until the next grant. */
  async killHolder(interrupted: AbortSignal): Promise<number> {
    const victim = await this.#signalNextHolder("SIGKILL", "killed", interrupted);
    const startMs = this.#signalledMs;
    const seen = this.grants;
    this.#screen.say(`${victim.label} holds the lock and is killed with SIGKILL.`);
    this.#workers.add();
    await this.until(() => this.grants > seen, interrupted);
    const tookMs = performance.now() - startMs;
    this.#screen.say(`${this.#holder?.label} took over after ${(tookMs / 1_000).toFixed(2)} s.`);
    return tookMs;
  }

  /** Stops the next holder for `stoppedMs`. Resolves with the time until the next grant. */
  async stopHolder(stoppedMs: number, interrupted: AbortSignal): Promise<number> {
    const victim = await this.#signalNextHolder("SIGSTOP", "STOPPED", interrupted);
    const startMs = this.#signalledMs;
    const seen = this.grants;
    this.#screen.say(`${victim.label} holds the lock and is stopped with SIGSTOP.`);
    await this.until(() => this.grants > seen, interrupted);
    const tookMs = performance.now() - startMs;
    this.#screen.say(`${this.#holder?.label} took over after ${(tookMs / 1_000).toFixed(2)} s.`);
    await this.pass(stoppedMs - tookMs, interrupted);
    this.#screen.say(`${victim.label} is continued, in the middle of its work.`);
    victim.state = "waiting";
    victim.process.kill("SIGCONT");
    return tookMs;
  }

  async pass(durationMs: number, interrupted: AbortSignal): Promise<void> {
    const untilMs = performance.now() + durationMs;
    await this.until(() => performance.now() >= untilMs, interrupted);
  }

  /** Redraws the screen until `isTrue`. */
  async until(isTrue: () => boolean, interrupted: AbortSignal): Promise<void> {
    const endMs = performance.now() + PATIENCE_MS;
    while (!isTrue()) {
      interrupted.throwIfAborted();
      if (performance.now() > endMs) throw new Error("The demonstration does not move on.");
      this.#screen.draw({
        workers: this.#workers.list,
        view: await this.#look(),
        counter: this.counter.value,
        writes: this.counter.writes,
      });
      await new Promise((resume) => setTimeout(resume, LOOK_MS));
    }
  }

  async #look(): Promise<LockView | null> {
    return (await this.#locks?.inspect(LOCK_NAME).catch(() => null)) ?? null;
  }

  async #signalNextHolder(
    signal: NodeJS.Signals,
    state: WorkerProcess["state"],
    interrupted: AbortSignal,
  ): Promise<WorkerProcess> {
    let victim: WorkerProcess | undefined;
    this.#onHolderReads = (worker) => {
      worker.process.kill(signal);
      worker.state = state;
      this.#signalledMs = performance.now();
      victim = worker;
    };
    await this.until(() => victim !== undefined, interrupted);
    return victim as WorkerProcess;
  }

  #answer(worker: WorkerProcess, request: Request): number {
    if (request.type === "held") this.#grant(worker, BigInt(request.token));
    if (request.type === "write") this.#write(worker, request);
    if (request.type === "read" && worker === this.#holder) {
      this.#onHolderReads?.(worker);
      this.#onHolderReads = null;
    }
    return this.counter.value;
  }

  #grant(worker: WorkerProcess, token: bigint): void {
    this.grants += 1;
    if (!this.counter.announce(token)) this.disorder += 1;
    if (this.#holder?.state === "HOLDS") this.#holder.state = "waiting";
    this.#holder = worker;
    worker.state = "HOLDS";
  }

  #write(
    worker: WorkerProcess,
    { value, token, lease }: Extract<Request, { type: "write" }>,
  ): void {
    const number = token === null ? null : BigInt(token);
    if (this.counter.write(value, number) || number === null) return;
    this.refused.push({ token: number, by: this.counter.highest });
    this.#screen.say(
      `${worker.label} writes with token …${token?.slice(-9)}: refused, the counter has seen ` +
        `…${String(this.counter.highest).slice(-9)} (its lease says: ${lease}).`,
    );
  }
}

/**
 * The number that the workers share. They read and write it in two steps, so two workers at a time
 * lose an update. It refuses a token below the highest that it has seen: fencing takes no more.
 */
export class Counter {
  value = 0;
  /** Writes that were accepted. */
  writes = 0;
  #highest = 0n;

  /** A worker announces its token before it reads. False: a higher token was announced before. */
  announce(token: bigint): boolean {
    if (token <= this.#highest) return false;
    this.#highest = token;
    return true;
  }

  write(value: number, token: bigint | null): boolean {
    if (token !== null && token < this.#highest) return false;
    this.value = value;
    this.writes += 1;
    return true;
  }

  get highest(): bigint {
    return this.#highest;
  }
}
