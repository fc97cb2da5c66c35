import type { Store } from "../contract/store.js";
import { Fifo } from "../rules/fifo.js";
import { Limits } from "../time/limits.js";
import type { Runtime } from "../time/runtime.js";
import type { Call } from "./call.js";
import { CallLimit, GRACE_MS } from "./call-limit.js";
import type { CallOptions } from "./call-options.js";
import { noteQueued } from "./traced.js";
import { WaitTime } from "./wait-time.js";

/** The waits of one client that are under way: its end ends them all. */
export class Waits {
  readonly #runtime: Runtime;
  readonly #limits: Limits;
  readonly #underWay = new Fifo<WaitTime>();

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    this.#limits = new Limits(runtime);
  }

  start({ waitMs, signal, event }: Pick<CallOptions, "waitMs" | "signal" | "event">): WaitTime {
    const onReport = event && noteQueued.bind(null, event);
    const wait = new WaitTime(this.#runtime, waitMs, signal, onReport, this.#limits);
    this.#underWay.add(wait);
    return wait;
  }

  /** Ends the call in time, with its wait or after `patienceMs` if it does not wait. */
  limit(call: Call, store: Store, patienceMs: number): void {
    const { wait } = call;
    if (!wait) {
      call.limit = new CallLimit(call, store, this.#limits, patienceMs);
      return;
    }
    // Nearly all waits end with a grant: the others have their limit from then on.
    wait.onOver = () => {
      call.limit = new CallLimit(call, store, this.#limits, GRACE_MS);
    };
    wait.start();
  }

  /** Once for each wait. */
  settle(wait: WaitTime): void {
    wait.settle();
    this.#underWay.remove(wait);
    // An object that keeps this wait would keep all waits that came behind it, one by one.
    wait.before = wait.behind = null;
  }

  close(): void {
    for (const wait of [...this.#underWay]) wait.end("closed");
    this.#limits.stop();
  }
}
