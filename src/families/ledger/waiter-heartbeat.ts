import { isFinal } from "../../errors/index.js";
import type { Heartbeat, HeartbeatReply } from "../../rules/ledger-command.js";
import type { Limited } from "../../time/limits.js";
import type { Acquisition } from "./acquisition.js";
import type { ArbiterClient } from "./arbiter-client.js";
import type { Answer } from "./command-batcher.js";
import { grantsInMs, holderView } from "./views.js";

/** Waiters further back in the queue send later, so that the first one usually gets the lock. */
const STAGGER_MS = 2;
const MAX_STAGGER_MS = 200;
/** A failed heartbeat is retried after a quarter period, before the store drops the waiters. */
const RETRY_PART = 4;

/**
 * Sends heartbeats of this client for one name while any of its acquisitions waits for it. Each
 * shows the store that the client is alive, and its answer repeats offers whose push was lost. One
 * is also sent when the current holder is due to expire, so that no waiter depends on pushes alone.
 */
export class WaiterHeartbeat implements Limited {
  readonly #key: string;
  readonly #client: ArbiterClient;
  readonly #waiting = new Set<Acquisition>();
  #periodMs = Number.POSITIVE_INFINITY;
  #staggerMs = 0;
  /** Counts changes of `#waiting`, to detect answers that are about an older set. */
  #changes = 0;
  /** When to send the next heartbeat; valid while this is in the limits of the client. */
  dueMs = 0;
  heapIndex = -1;

  constructor(key: string, client: ArbiterClient) {
    this.#key = key;
    this.#client = client;
  }

  get isIdle(): boolean {
    return this.#waiting.size === 0;
  }

  add(acquisition: Acquisition, ahead: number | null, dueMs: number): void {
    if (!this.#waiting.has(acquisition)) this.#changes += 1;
    this.#waiting.add(acquisition);
    this.#periodMs = Math.min(this.#periodMs, acquisition.heartbeatMs);
    if (this.#waiting.size === 1) {
      this.#staggerMs = Math.min((ahead ?? 0) * STAGGER_MS, MAX_STAGGER_MS);
    }
    this.#wakeIn(dueMs);
  }

  remove(acquisition: Acquisition): void {
    if (!this.#waiting.delete(acquisition)) return;
    this.#changes += 1;
    if (this.isIdle) this.end();
  }

  end(): void {
    this.#client.limits.remove(this);
  }

  onDue(): void {
    void this.send();
  }

  async send(): Promise<void> {
    this.end();
    const changes = this.#changes;
    // Schedule the next heartbeat without waiting for this answer: the timeout of a lost call is
    // longer than the store waits for a heartbeat.
    // rule: unanswered-heartbeat-is-repeated
    this.#wakeIn(this.#periodMs);
    const { id, batcher } = this.#client;
    try {
      this.#onAnswer(
        await batcher.send({ type: "heartbeat", key: this.#key, client: id }),
        changes,
      );
    } catch (error) {
      // Other failures are left to the silence limit of each acquisition.
      if (isFinal(error)) {
        for (const acquisition of [...this.#waiting]) acquisition.onRefusal(error);
      }
      // rule: failed-heartbeat-is-repeated
      this.#wakeIn(this.#periodMs / RETRY_PART);
    }
  }

  #onAnswer(answer: Answer<Heartbeat>, changes: number): void {
    const { reply } = answer;
    const isSameSet = changes === this.#changes;
    this.#client.acquisitions.onHeartbeatReply(this.#key, answer);
    this.#hear(reply);
    if (reply.more) return this.#wakeIn(0);
    // The store has fewer waiters of this client than there are, after a restart or a long silence.
    // Each acquisition asks again to rejoin the queue.
    // rule: lost-places-are-asked-for-again
    if (isSameSet && reply.waiting + reply.grants.length < this.#waiting.size) {
      for (const acquisition of this.#waiting) acquisition.ask();
    }
    // rule: waiter-asks-when-the-holder-is-due
    this.#wakeIn(reply.holder ? reply.dueUs / 1000 : this.#periodMs);
  }

  #hear(reply: HeartbeatReply): void {
    const holder = reply.holder && holderView(reply.holder);
    for (const acquisition of this.#waiting) {
      acquisition.heard(holder, null, grantsInMs(reply));
    }
  }

  /** Sends the next heartbeat at the earliest time asked for, within one period at the latest. */
  #wakeIn(dueMs: number): void {
    if (this.isIdle) return;
    const { runtime, limits, arbiter } = this.#client;
    const { pollMs = Number.POSITIVE_INFINITY } = arbiter;
    const dueInMs = Math.max(1, dueMs) + 1 + this.#staggerMs;
    const delayMs = Math.min(dueInMs, this.#periodMs, pollMs);
    const wakeMs = runtime.clock.nowMs() + delayMs;
    if (this.heapIndex >= 0 && wakeMs >= this.dueMs) return;
    limits.remove(this);
    this.dueMs = wakeMs;
    limits.add(this);
  }
}

/** The heartbeats of this client, one for each name that it waits for. */
export class Heartbeats {
  readonly #client: ArbiterClient;
  readonly #byKey = new Map<string, WaiterHeartbeat>();

  constructor(client: ArbiterClient) {
    this.#client = client;
  }

  /** Keeps a queued acquisition in the queue, and asks again when the holder is due to expire. */
  keep(acquisition: Acquisition, ahead: number | null, dueMs: number): void {
    const { key } = acquisition;
    let heartbeat = this.#byKey.get(key);
    if (!heartbeat) {
      heartbeat = new WaiterHeartbeat(key, this.#client);
      this.#byKey.set(key, heartbeat);
    }
    heartbeat.add(acquisition, ahead, dueMs);
  }

  leave(acquisition: Acquisition): void {
    const heartbeat = this.#byKey.get(acquisition.key);
    if (!heartbeat) return;
    heartbeat.remove(acquisition);
    if (heartbeat.isIdle) this.#byKey.delete(acquisition.key);
  }

  /** Sends a heartbeat for every name, because pushes may have been missed. */
  sendAll(): void {
    for (const heartbeat of this.#byKey.values()) void heartbeat.send();
  }
}
