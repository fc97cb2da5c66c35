/**
 * A program that uses locks: several tasks, each one operation after the other, in one simulated process
 * with one Holdfast. It writes down all that it asks for, is given, believes and gives back.
 */
import { Holdfast } from "../src/holdfast.js";
import type { HeldLease, Lease } from "../src/lease/lease.js";
import type { Lock } from "../src/locks/lock.js";
import { ArbiterStore } from "../src/stores/arbiter/arbiter-store.js";
import type { Chance } from "./chance.js";
import type { Happening, History } from "./history.js";
import { drawOperation, type Operation } from "./operation.js";
import { isHealthy, type Plan } from "./plan.js";
import type { SimulatedProcess } from "./process.js";
import type { SimulatedArbiter } from "./transport.js";

/** A store that is silent for 10 s ends a try; one that answers too late may do so three times. */
const LONGEST_TRY_MS = 30_000;

/** A lease in use, and the last of its deadlines that was written down, by its clock and the world's. */
interface Tracked {
  readonly id: string;
  readonly lease: HeldLease;
  deadlineMs: number;
  untilMs: number;
}

export class Program {
  readonly process: SimulatedProcess;
  readonly arbiter: SimulatedArbiter;
  readonly #plan: Plan;
  readonly #history: History;
  readonly #chance: Chance;
  readonly #holdfast: Holdfast;
  readonly #tracked = new Set<Tracked>();
  #untilMs = 0;
  #running = 0;
  #leases = 0;
  /** Acquisitions and releases under way. */
  #pending = 0;
  #isClosed = false;

  constructor(
    process: SimulatedProcess,
    arbiter: SimulatedArbiter,
    plan: Plan,
    history: History,
    chance: Chance,
  ) {
    this.process = process;
    this.arbiter = arbiter;
    this.#plan = plan;
    this.#history = history;
    this.#chance = chance;
    const { claimMs } = plan;
    this.#holdfast = new Holdfast(
      new ArbiterStore(arbiter, claimMs === undefined ? {} : { claimMs }),
    );
    process.onTurnEnd = () => this.#lookBack();
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
      await this.process.sleep(operation.thinkMs);
      if (this.process.nowMs > this.#untilMs) return;
      this.#pending += 1;
      await this.#perform(operation);
      this.#pending -= 1;
    }
  }

  async #perform(operation: Operation): Promise<void> {
    const { name, mode, weight, limit, entry, waitMs, abortMs } = operation;
    const lease = `${this.process.id}/${this.#leases++}`;
    const process = this.process.id;
    const withinMs = this.process.worldSpanMs(
      entry === "try" ? LONGEST_TRY_MS : Math.min(waitMs, abortMs),
    );
    const waits = entry !== "try";
    this.#record({ type: "asked", process, lease, name, mode, weight, limit, withinMs, waits });
    let isHeld = false;
    const hold = (held: Lease): Promise<void> => {
      isHeld = true;
      this.#pending -= 1;
      return this.#hold(lease, operation, held as HeldLease).finally(() => {
        this.#pending += 1;
      });
    };
    try {
      if (entry === "run") {
        await this.#lock(operation).run(hold, this.#options(operation));
        this.#record({ type: "released", lease });
        return;
      }
      const held = await this.#enter(operation);
      if (!held) return this.#record({ type: "refused", lease, reason: "busy" });
      await hold(held);
      if (!operation.releases) return;
      await held.release();
      this.#record({ type: "released", lease });
    } catch (error) {
      if (!isHeld) this.#record({ type: "refused", lease, reason: reasonOf(error) });
      else this.#record({ type: "released", lease });
    }
  }

  #enter(operation: Operation): Promise<Lease | null> {
    const lock = this.#lock(operation);
    const options = this.#options(operation);
    return operation.entry === "try" ? lock.tryAcquire(options) : lock.acquire(options);
  }

  #lock({ name, kind, limit }: Operation): Lock {
    if (kind === "semaphore") return this.#holdfast.semaphore(name, limit);
    return kind === "read" ? this.#holdfast.readWrite(name).read : this.#holdfast.mutex(name);
  }

  #options(operation: Operation) {
    const { ttlMs, renew, maxHoldMs, graceMs, waitMs, weight, fairness, cohortLimit } = operation;
    const options = { ttlMs, renew, maxHoldMs, graceMs, waitMs, weight, fairness, cohortLimit };
    if (operation.abortMs === Number.POSITIVE_INFINITY) return options;
    const controller = new AbortController();
    void this.process.sleep(operation.abortMs).then(() => controller.abort(new Error("aborted")));
    return { ...options, signal: controller.signal };
  }

  /** From the moment the lock is ours to the moment we no longer rely on it. */
  async #hold(id: string, operation: Operation, held: HeldLease): Promise<void> {
    const { name, mode, weight, limit, renew, listens, cohortLimit } = operation;
    const process = this.process.id;
    const { token } = held;
    const lock = { process, lease: id, name, token, mode, weight, limit };
    const turns = cohortLimit;
    const graceMs = this.process.worldSpanMs(operation.graceMs);
    const longestMs = this.process.worldSpanMs(operation.maxHoldMs);
    const ttlMs = this.process.worldSpanMs(operation.ttlMs);
    const terms = { ttlMs, renews: renew, graceMs, longestMs, turns, listens };
    this.#record({ type: "held", ...lock, ...terms });
    const tracked = { id, lease: held, deadlineMs: Number.NaN, untilMs: Number.POSITIVE_INFINITY };
    this.#tracked.add(tracked);
    this.#recordBelief(tracked);
    let isOver = false;
    if (listens) {
      const onAbort = (): void => {
        isOver = true;
        this.#record({ type: "lost", lease: id, reason: held.signal.reason.reason });
      };
      if (held.signal.aborted) onAbort();
      else held.signal.addEventListener("abort", onAbort, { once: true });
    }
    if (operation.blockMs > 0) this.process.block(operation.blockMs);
    const probe = (): void => {
      if (operation.probes && !this.#probe(id, held)) isOver = true;
    };
    probe();
    const endMs = this.process.nowMs + operation.holdMs;
    if (operation.renewMs > 0 && !isOver) await held.renew(operation.renewMs).catch(() => {});
    // Who means to leave it to its fate stays to the bitter end.
    while ((!isOver || !operation.releases) && this.process.nowMs < endMs) {
      const restMs = endMs - this.process.nowMs;
      await this.process.sleep(Math.min(restMs, operation.ttlMs * this.#chance.between(0.02, 0.3)));
      probe();
    }
    this.#tracked.delete(tracked);
    this.#record({ type: "releasing", lease: id });
  }

  #probe(lease: string, held: Lease): boolean {
    let holds = true;
    try {
      held.assertHeld();
    } catch {
      holds = false;
    }
    this.#record({ type: "probed", lease, holds });
    return holds;
  }

  /** Ends somebody's lease now and then. */
  async #revoke(): Promise<void> {
    const { names, ttlsMs } = this.#plan;
    while (this.process.nowMs < this.#untilMs) {
      await this.process.sleep((ttlsMs[0] as number) * this.#chance.between(1, 8));
      const name = this.#chance.pick(names);
      try {
        const { holders } = await this.#holdfast.inspect(name);
        const [holder] = holders;
        if (holder) await this.#holdfast.revoke(name, { token: holder.token, reason: "chance" });
      } catch {
        // No answer, no revocation: another time.
      }
    }
  }

  /** At the end of a turn: what is believed now, and does anything keep the process alive? */
  #lookBack(): void {
    for (const tracked of this.#tracked) this.#recordBelief(tracked);
    if (this.#pending > 0 || this.arbiter.callsUnderWay > 0 || !isHealthy(this.#plan)) return;
    const { alive } = this.process.timers;
    if (alive > 0) this.#record({ type: "left", what: "timers that keep it alive", count: alive });
  }

  #recordBelief(tracked: Tracked): void {
    const { hold } = tracked.lease;
    const deadlineMs = hold.isLive ? hold.deadlineMs : Number.NEGATIVE_INFINITY;
    if (deadlineMs === tracked.deadlineMs || this.process.isBlind) return;
    tracked.deadlineMs = deadlineMs;
    const { nowMs } = this.process;
    tracked.untilMs = hold.isLive
      ? this.process.worldMs(deadlineMs)
      : Math.min(tracked.untilMs, nowMs);
    this.#record({ type: "believed", lease: tracked.id, untilMs: tracked.untilMs });
  }

  #record(happening: Happening): void {
    this.#history.record(this.process.nowMs, happening);
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? ((error as { code?: string }).code ?? error.message) : "unknown";
}
