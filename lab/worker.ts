/** The process in which a subject runs: it obeys orders and reports each step with its time. */

import type { Happening } from "./history.js";
import { Lateness, nowMs } from "./lateness.js";
import { LOCK_NAME, type Notice, type Order, type Report, type Setting } from "./orders.js";
import type { Holding, Locker, Subject } from "./subjects/subject.js";

const STEP_MS = 5;
/** No thread wakes one that waits here. */
const NEVER = new Int32Array(new SharedArrayBuffer(4));

/** Of the trial that is under way. */
let lane = "";
function report(happening: Happening | Notice, atMs: number = nowMs()): void {
  process.send?.({ ...happening, atMs } satisfies Report);
}

/** Work under one lock. Each step follows a check, and counts from just before that check. */
class Work {
  readonly #holding: Holding;
  #timer: NodeJS.Timeout | null = null;
  #lastStepMs = Number.NaN;
  #isOver = false;

  constructor(holding: Holding) {
    this.#holding = holding;
    const token = holding.token === undefined ? {} : { token: `${holding.token}` };
    report({ type: "believes", lane, ...token });
    holding.onLost?.((reason) => {
      if (this.#isOver) return;
      report({ type: "told", lane, reason });
      this.#disbelieve("it was told");
    });
    if (!this.step()) return;
    report({ type: "worksFrom", lane }, this.#lastStepMs);
    this.#timer = setInterval(() => this.step(), STEP_MS);
  }

  step(): boolean {
    const atMs = nowMs();
    if (this.#isOver) return false;
    if (this.#holding.isBelieved()) {
      this.#lastStepMs = atMs;
      return true;
    }
    this.#disbelieve("its check says so");
    return false;
  }

  /** Works on without a turn of the event loop. */
  block(forMs: number): void {
    const untilMs = nowMs() + forMs;
    report({ type: "fault", lane, what: "blocked", text: "event loop blocked" });
    // A synchronous wait blocks the event loop as a computation does, and leaves the core free.
    while (nowMs() < untilMs) {
      this.step();
      Atomics.wait(NEVER, 0, 0, STEP_MS);
    }
    report({ type: "fault", lane, what: "unblocked", text: "event loop free" });
  }

  pause(): void {
    if (this.#timer) clearInterval(this.#timer);
    this.#timer = null;
  }

  async finish(): Promise<void> {
    if (!this.#isOver && this.step()) {
      this.#end();
      report({ type: "releases", lane });
    }
    await this.#holding.release().catch(() => undefined);
    report({ type: "released" });
  }

  write(): void {
    const { token } = this.#holding;
    report({ type: "writing", ...(token === undefined ? {} : { token: `${token}` }) });
  }

  #disbelieve(why: string): void {
    // A check may call `onLost` before it returns.
    if (this.#isOver) return;
    this.#end();
    report({ type: "disbelieves", lane, why });
  }

  #end(): void {
    this.pause();
    this.#isOver = true;
    if (!Number.isNaN(this.#lastStepMs)) report({ type: "worksTo", lane }, this.#lastStepMs);
  }
}

let locker: Locker | null = null;
let lateness: Lateness | null = null;
let work: Work | null = null;

async function open(setting: Setting): Promise<void> {
  const subject = await loadSubject(setting.subject);
  lane = setting.lane;
  locker = await subject.open(setting);
  lateness = new Lateness((byMs) => report({ type: "late", byMs }));
  report({ type: "ready" });
}

async function close(): Promise<void> {
  lateness?.end();
  work = null;
  await locker?.close?.();
  report({ type: "closed", isWhole: locker?.close !== undefined });
}

async function obey(message: Order): Promise<void> {
  switch (message.order) {
    case "open":
      return await open(message.setting);
    case "close":
      return await close();
    case "acquire":
      if (!locker) throw new Error("it is not open");
      report({ type: "asks", lane });
      work = new Work(await locker.acquire(LOCK_NAME));
      return;
    case "finish":
      return await work?.finish();
    case "block":
      return work?.block(message.forMs);
    case "check":
      work?.pause();
      if (work?.step()) report({ type: "checked" });
      return;
    case "write":
      return work?.write();
  }
}

// Without its parent there is no one left to report to.
process.once("disconnect", () => process.exit());
process.on("message", (message: Order) => {
  obey(message).catch((error: unknown) => {
    // A process that cannot start or end a trial ends, with the error in its log.
    if (message.order === "open" || message.order === "close") throw error;
    report({ type: "refused", lane, why: error instanceof Error ? error.message : `${error}` });
  });
});

/** A process of a trial runs one subject: it loads no family that it does not need. */
const FAMILIES: readonly (() => Promise<readonly Subject[]>)[] = [
  async () => (await import("./subjects/rungs.js")).rungs,
  async () => (await import("./subjects/holdfast.js")).holdfastStores,
  async () => (await import("./subjects/peers.js")).peers,
];

async function loadSubject(id: string): Promise<Subject> {
  for (const load of FAMILIES) {
    const found = (await load()).find((subject) => subject.id === id);
    if (found) return found;
  }
  throw new Error(`no subject ${id}`);
}
