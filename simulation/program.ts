/**
 * A program that uses locks: several tasks, each with one operation after the other, in one
 * simulated process with one Holdfast. The program records every request, grant, belief and
 * release.
 */
import { Holdfast } from "../src/api/holdfast.js";
import type { HeldLease, Lease } from "../src/lease/lease.js";
import type { Lock } from "../src/locks/lock.js";
import type { AcquireOptions } from "../src/options/options.js";
import type { Chance } from "./chance.js";
import type { Happening, History } from "./history.js";
import type { Link } from "./link.js";
import { drawOperation, type Operation } from "./operation.js";
import { isHealthy, type Plan } from "./plan.js";
import type { SimulatedProcess } from "./process.js";
import { Witness } from "./witness.js";

export class Program {
  readonly id: string;
  readonly process: SimulatedProcess;
  readonly link: Link;
  readonly #plan: Plan;
  readonly #history: History;
  readonly #chance: Chance;
  readonly #holdfast: Holdfast;
  readonly #witness: Witness;
  #untilMs = 0;
  #running = 0;
  /** The pause that the tasks take together. */
  #step: Promise<void> | null = null;
  #leases = 0;
  /** Acquisitions and releases under way. */
  #pending = 0;
  #isClosed = false;

  constructor(
    id: string,
    process: SimulatedProcess,
    link: Link,
    plan: Plan,
    history: History,
    chance: Chance,
  ) {
    this.id = id;
    this.process = process;
    this.link = link;
    this.#plan = plan;
    this.#history = history;
    this.#chance = chance;
    this.#holdfast = new Holdfast(link.openStore(plan.offerMs));
    this.#witness = new Witness(process, history);
    // The timers of a process do not show which of several programs set them.
    if (isHealthy(plan) && !link.isLocal) process.onTurnEnd(() => this.#checkKeptAlive());
  }

  /** No task is under way. */
  get isIdle(): boolean {
    return this.#running === 0;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Begins nothing new after `untilMs`. */
  start(untilMs: number): void {
    this.#untilMs = untilMs;
    const { tasks, revokes } = this.#plan;
    for (let task = 0; task < tasks; task += 1) this.#begin(() => this.#work());
    if (revokes) this.#begin(() => this.#revoke());
  }

  close(): void {
    this.process.do(() => {
      this.#pending += 1;
      void this.#holdfast.close().then(() => {
        this.#isClosed = true;
      });
    });
  }

  #begin(task: () => Promise<void>): void {
    this.#running += 1;
    this.process.do(() => {
      void task().then(() => {
        this.#running -= 1;
      });
    });
  }

  async #work(): Promise<void> {
    for (;;) {
      const operation = drawOperation(this.#plan, this.#chance);
      await this.#pause(operation.thinkMs);
      if (this.process.nowMs > this.#untilMs) return;
      this.#pending += 1;
      await this.#perform(operation);
      this.#pending -= 1;
    }
  }

  /** Where tasks are in step, one that comes to a pause of another task goes on with that task. */
  #pause(forMs: number): Promise<void> {
    if (!this.#plan.inStep) return this.process.sleep(forMs);
    this.#step ??= this.process.sleep(forMs).then(() => {
      this.#step = null;
    });
    return this.#step;
  }

  async #perform(operation: Operation): Promise<void> {
    const lease = `${this.id}/${this.#leases++}`;
    this.#ask(lease, operation);
    let isHeld = false;
    const hold = async (held: Lease): Promise<void> => {
      isHeld = true;
      this.#pending -= 1;
      await this.#hold(lease, operation, held as HeldLease);
      this.#pending += 1;
    };
    try {
      const refusal = await this.#enter(lease, operation, hold);
      if (refusal !== null) return this.#record({ type: "refused", lease, reason: refusal });
    } catch (error) {
      // An assertion is recorded wherever it fails; other errors of a release end no lease.
      if (!isHeld || reasonOf(error) === INTERNAL)
        return this.#record({ type: "refused", lease, reason: reasonOf(error) });
    }
    if (operation.releases) this.#record({ type: "released", lease });
  }

  #ask(lease: string, operation: Operation): void {
    const { label: name, mode, weight, limit, entry, waitMs, abortMs } = operation;
    const waits = entry !== "try";
    const localMs = waits ? Math.min(waitMs, abortMs) : 0;
    const withinMs = this.process.worldSpanMs(localMs);
    const process = this.process.id;
    this.#record({ type: "asked", process, lease, name, mode, weight, limit, withinMs, waits });
  }

  /** Acquires the lock, runs `hold`, releases; returns the reason where the lock was refused. */
  async #enter(
    lease: string,
    operation: Operation,
    hold: (held: Lease) => Promise<void>,
  ): Promise<string | null> {
    const options = this.#options(operation);
    if (operation.kind === "once") return this.#once(lease, operation, options, hold);
    const lock = this.#lock(operation);
    if (operation.entry === "run") {
      await lock.run(hold, options);
      return null;
    }
    const held = await (operation.entry === "try"
      ? lock.tryAcquire({ ...options, waitMs: 0 })
      : lock.acquire(options));
    if (!held) return "busy";
    await hold(held);
    if (operation.releases) await held.release();
    return null;
  }

  async #once(
    lease: string,
    { name, label, ttlMs }: Operation,
    options: AcquireOptions,
    hold: (held: Lease) => Promise<void>,
  ): Promise<string | null> {
    let endMs = 0;
    const work = async (held: Lease): Promise<void> => {
      await hold(held);
      endMs = this.process.nowMs;
    };
    const result = await this.#holdfast.once(name, work, { ...options, keepMs: ttlMs });
    if (!result.ran) return result.state;
    const untilMs = endMs + this.process.worldSpanMs(ttlMs);
    this.#record({ type: "done", name: label, lease, untilMs });
    return null;
  }

  #lock({ name, kind, limit }: Operation): Lock {
    if (kind === "semaphore") return this.#holdfast.semaphore(name, limit);
    return kind === "read" ? this.#holdfast.readWrite(name).read : this.#holdfast.mutex(name);
  }

  #options(operation: Operation): AcquireOptions {
    const { ttlMs, renew, maxHoldMs, graceMs, waitMs, weight, fairness, maxLocalTurns } = operation;
    const { storeTimeoutMs, onlySends } = this.#plan;
    const options = {
      ttlMs,
      renew,
      maxHoldMs,
      graceMs,
      waitMs,
      weight,
      fairness,
      maxLocalTurns,
      release: onlySends ? ("sent" as const) : ("answered" as const),
      ...(storeTimeoutMs === undefined ? {} : { storeTimeoutMs }),
    };
    if (operation.abortMs === Number.POSITIVE_INFINITY) return options;
    const controller = new AbortController();
    void this.process.sleep(operation.abortMs).then(() => controller.abort(new Error("aborted")));
    return { ...options, signal: controller.signal };
  }

  /** From the moment the lock is held to the moment the program does not rely on it any more. */
  async #hold(id: string, operation: Operation, held: HeldLease): Promise<void> {
    const { process } = this;
    const { label: name, mode, weight, limit, listens, maxLocalTurns: turns } = operation;
    const terms = {
      renews: operation.renew,
      ttlMs: process.worldSpanMs(operation.ttlMs),
      graceMs: process.worldSpanMs(operation.graceMs),
      longestMs: process.worldSpanMs(operation.maxHoldMs),
    };
    let isOver = false;
    const said = { name, mode, weight, limit, listens, turns, ...terms };
    this.#witness.watch(id, held, said, operation.probes, () => {
      isOver = true;
    });
    if (operation.blockMs > 0) process.block(operation.blockMs);
    const probe = (): void => {
      if (operation.probes && !this.#witness.probe(id)) isOver = true;
    };
    probe();
    const endMs = process.nowMs + operation.holdMs;
    const { renewMs, unevenRenewMs } = operation;
    if (unevenRenewMs > 0 && !isOver) {
      this.link.isolate?.();
      void this.#renew(id, unevenRenewMs, held);
      await this.#pause(operation.ttlMs * this.#chance.between(0.02, 0.1));
    }
    if (renewMs > 0 && !isOver) await this.#renew(id, renewMs, held);
    // A program that does not release goes on to the end of its time, even after a loss.
    while ((!isOver || !operation.releases) && process.nowMs < endMs) {
      const restMs = endMs - process.nowMs;
      await this.#pause(Math.min(restMs, operation.ttlMs * this.#chance.between(0.02, 0.3)));
      probe();
    }
    this.#witness.dismiss(id);
  }

  async #renew(lease: string, renewMs: number, held: HeldLease): Promise<void> {
    try {
      await held.renew(renewMs);
    } catch (error) {
      if (reasonOf(error) === INTERNAL) this.#record({ type: "refused", lease, reason: INTERNAL });
    }
  }

  /** Revokes the lease of some holder now and then. */
  async #revoke(): Promise<void> {
    const { names, ttlsMs } = this.#plan;
    while (this.process.nowMs < this.#untilMs) {
      await this.process.sleep((ttlsMs[0] as number) * this.#chance.between(1, 8));
      const name = this.#chance.pick(names);
      this.#pending += 1;
      try {
        const { holders } = await this.#holdfast.inspect(name);
        const [holder] = holders;
        if (holder) await this.#holdfast.revoke(name, { token: holder.token, reason: "chance" });
      } catch {
        // Without an answer there is no revocation this time.
      } finally {
        this.#pending -= 1;
      }
    }
  }

  /**
   * Where no call is under way, no timer may keep the process alive, even while a lease is held.
   */
  #checkKeptAlive(): void {
    if (this.#pending > 0 || this.link.callsUnderWay > 0) return;
    const { alive } = this.process.timers;
    if (alive > 0) this.#record({ type: "left", what: "timers that keep it alive", count: alive });
  }

  #record(happening: Happening): void {
    this.#history.record(this.process.nowMs, happening);
  }
}

const INTERNAL = "HF_INTERNAL";

function reasonOf(error: unknown): string {
  return error instanceof Error ? ((error as { code?: string }).code ?? error.message) : "unknown";
}
