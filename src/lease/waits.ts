import type { Store } from "../contract/store.js";
import { Fifo } from "../rules/fifo.js";
import { Limits } from "../time/limits.js";
import type { Runtime } from "../time/runtime.js";
import { noteQueued } from "./acquire-event.js";
import { AcquireWait } from "./acquire-wait.js";
import type { LeaseRequest } from "./lease-request.js";
import { GRACE_MS, RequestLimit } from "./request-limit.js";
import type { RequestOptions } from "./request-options.js";

/** The waits of one client that are under way; closing the client ends them all. */
export class Waits {
  readonly #runtime: Runtime;
  readonly #limits: Limits;
  readonly #underWay = new Fifo<AcquireWait>();

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    this.#limits = new Limits(runtime);
  }

  start({
    waitMs,
    signal,
    event,
  }: Pick<RequestOptions, "waitMs" | "signal" | "event">): AcquireWait {
    const onReport = event && noteQueued.bind(null, event);
    const wait = new AcquireWait(this.#runtime, waitMs, signal, onReport, this.#limits);
    this.#underWay.add(wait);
    return wait;
  }

  /** Limits a request: after its wait, or after `patienceMs` if it does not wait. */
  limit(request: LeaseRequest, store: Store, patienceMs: number): void {
    const { wait } = request;
    if (!wait) {
      request.limit = new RequestLimit(request, store, this.#limits, patienceMs);
      return;
    }
    // Nearly all waits end with a grant, so a limit is made only at the end of a wait.
    wait.onOver = () => {
      request.limit = new RequestLimit(request, store, this.#limits, GRACE_MS);
    };
    wait.start();
  }

  /** Once for each wait. */
  settle(wait: AcquireWait): void {
    wait.settle();
    this.#underWay.remove(wait);
    // Otherwise an object that refers to this wait would keep all later waits in memory.
    wait.before = wait.behind = null;
  }

  close(): void {
    for (const wait of [...this.#underWay]) wait.end("closed");
    this.#limits.stop();
  }
}
