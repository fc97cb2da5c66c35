import type { Limited } from "../../time/limits.js";
import { TimeLimitError } from "../../time/timers.js";
import type { CallOptions } from "./etcd-client.js";

/** How often a request has left this process. */
export interface Sendings {
  count: number;
}

/** The part of a call in the transport that an interceptor can cancel. */
interface Transport {
  cancelWithStatus(status: number, details: string): void;
}

const DEADLINE_EXCEEDED = 4;

/** A call with a time limit. */
export class TimedCall implements Limited {
  readonly dueMs: number;
  /** The options to pass to the client. */
  readonly options: CallOptions;
  heapIndex = -1;
  readonly #limitMs: number;
  readonly #onLate: (error: Error) => void;
  #transport: Transport | null = null;
  #isLate = false;

  constructor(limitMs: number, nowMs: number, sendings: Sendings, onLate: (error: Error) => void) {
    this.#limitMs = limitMs;
    this.dueMs = nowMs + limitMs;
    this.#onLate = onLate;
    this.options = {
      interceptors: [
        (options, next) => {
          // The client repeats a cancelled call, whose caller does not wait any more.
          if (this.#isLate) throw this.#error();
          sendings.count += 1;
          const transport = next(options);
          this.#transport = transport;
          return transport;
        },
      ],
    };
  }

  onDue(): void {
    const error = this.#error();
    this.#isLate = true;
    this.#onLate(error);
    this.#transport?.cancelWithStatus(DEADLINE_EXCEEDED, error.message);
  }

  onStop(): void {
    this.#onLate(new Error("The store was closed before etcd answered."));
  }

  #error(): Error {
    return new TimeLimitError(this.#limitMs);
  }
}
