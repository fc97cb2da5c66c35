import { Fifo } from "../rules/fifo.js";
import { Limits } from "../time/limits.js";
import type { Port } from "../time/port.js";
import type { CallOptions } from "./call-options.js";
import { noteQueued } from "./traced.js";
import { WaitTime } from "./wait-time.js";

/** The waits of one client that are under way: its end ends them all. */
export class Waits {
  readonly #port: Port;
  readonly #limits: Limits;
  readonly #underWay = new Fifo<WaitTime>();

  constructor(port: Port) {
    this.#port = port;
    this.#limits = new Limits(port);
  }

  start({ waitMs, signal, event }: Pick<CallOptions, "waitMs" | "signal" | "event">): WaitTime {
    const onReport = event && noteQueued.bind(null, event);
    const wait = new WaitTime(this.#port, waitMs, signal, { onReport, limits: this.#limits });
    wait.place = this.#underWay.push(wait);
    return wait;
  }

  settle(wait: WaitTime): void {
    wait.settle();
    if (wait.place) this.#underWay.remove(wait.place);
    wait.place = null;
  }

  close(): void {
    for (const wait of [...this.#underWay]) wait.end("closed");
    this.#limits.stop();
  }
}
