/**
 * The exclusive acquisitions of this process that do not wait.
 *
 * Each lists the whole queue, so a thousand concurrent calls would read a million entries. So calls
 * for a name that arrive while a request is in progress share the next request. Only the first of
 * them can be granted the lock. The others resolve as busy, which is true either way: after they
 * were called, the lock was held by that grant or by the holder that the store named.
 */

import type { Busy, Claim } from "../../contract/store.js";
import { keyOf } from "../../rules/name.js";
import type { Clock } from "../../time/clock.js";
import { silenceError } from "../acquire-errors.js";
import type { SessionGrant } from "./session-grant.js";
import { holderView } from "./views.js";

type Result = SessionGrant | Busy;

interface Batch {
  isSent: boolean;
  result: Promise<Result>;
}

export class Tries {
  readonly #clock: Clock;
  readonly #ask: (claim: Claim) => Promise<Result>;
  /** The latest batch for each name and `storeTimeoutMs`. */
  readonly #latest = new Map<string, Batch>();

  constructor(clock: Clock, ask: (claim: Claim) => Promise<Result>) {
    this.#clock = clock;
    this.#ask = ask;
  }

  acquire(claim: Claim): Promise<Result> {
    const { space, name, storeTimeoutMs } = claim;
    // Calls with different limits cannot share a request: it would fail too early for some.
    const key = `${storeTimeoutMs} ${keyOf(space, name)}`;
    const before = this.#latest.get(key);
    if (before && !before.isSent) return before.result.then((result) => this.#busyBehind(result));
    const batch: Batch = { isSent: false, result: Promise.resolve(NOTHING) };
    this.#latest.set(key, batch);
    batch.result = this.#send(batch, claim, before).finally(() => {
      if (this.#latest.get(key) === batch) this.#latest.delete(key);
    });
    return batch.result;
  }

  async #send(batch: Batch, claim: Claim, before: Batch | undefined): Promise<Result> {
    if (before) {
      const sinceMs = this.#clock.nowMs();
      const failure = await before.result.then(
        () => undefined,
        (error: unknown) => error,
      );
      const waitedMs = this.#clock.nowMs() - sinceMs;
      // The time is up before the request was sent.
      if (waitedMs >= claim.storeTimeoutMs) throw silenceError(waitedMs, failure);
    }
    batch.isSent = true;
    return await this.#ask(claim);
  }

  #busyBehind(result: Result): Busy {
    if (result.type === "busy") return result;
    const { entry, token } = result;
    const { claim, id, text } = entry;
    const { mode, weight, limit } = claim;
    const held = { id, token, session: "", mode, weight, limit, text };
    return { type: "busy", holder: holderView(held, this.#clock.wallUs() / 1000), mark: null };
  }
}

const NOTHING: Busy = { type: "busy", holder: null, mark: null };
