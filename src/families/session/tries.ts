/**
 * The exclusive calls of this process that do not wait.
 *
 * Each would list the whole queue, so that a thousand at once would read a million entries. So
 * those for one name that come while one is under way share the next request. The first of them may
 * be granted the lock; the others are never granted anything, and are told what is true in any
 * case: at a moment after they began, the lock was held, by this grant or by the holder that the
 * store named.
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
  /** The latest batch of each name and time limit. */
  readonly #latest = new Map<string, Batch>();

  constructor(clock: Clock, ask: (claim: Claim) => Promise<Result>) {
    this.#clock = clock;
    this.#ask = ask;
  }

  acquire(claim: Claim): Promise<Result> {
    const { space, name, storeTimeoutMs } = claim;
    // Another limit may end a request too early.
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
      // The callers have given up.
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
