import { isFinal } from "../../errors/index.js";
import type { Heartbeat, HeartbeatReply } from "../../rules/ledger-command.js";
import type { Limited } from "../../time/limits.js";
import type { Acquisition } from "./acquisition.js";
import type { ArbiterClient } from "./arbiter-client.js";
import type { Answer } from "./command-batcher.js";
import { grantsInMs, holderView } from "./views.js";

/** Waiters further back ask a little later, so that the first one usually finds the lock free. */
const STAGGER_MS = 2;
const MAX_STAGGER_MS = 200;
/** A heartbeat that failed is repeated soon: three silent periods cost this client its places. */
const RETRY_PART = 4;

/**
 * Sends heartbeats of this client for one name while any of its acquisitions waits there. Each
 * tells the store that the client lives, and brings grants whose push was lost. One is also sent
 * when the holder in front is due, so that no wait depends on a message alone.
 */
export class WaiterHeartbeat implements Limited {
  readonly #key: string;
  readonly #client: ArbiterClient;
  readonly #waiting = new Set<Acquisition>();
  #periodMs = Number.POSITIVE_INFINITY;
  #staggerMs = 0;
  /** Counts changes of the set: the answer to an older heartbeat is about an older set. */
  #changes = 0;
  /** When to send the next heartbeat, while it is among the limits of the client. */
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
    // A lost call ends by a timeout that is longer than the store waits for a heartbeat, so the
    // next heartbeat does not wait for its answer.
    // rule: unanswered-heartbeat-is-repeated
    this.#wakeIn(this.#periodMs);
    const { id, batcher } = this.#client;
    try {
      this.#onAnswer(
        await batcher.send({ type: "heartbeat", key: this.#key, client: id }),
        changes,
      );
    } catch (error) {
      // Each acquisition has its own limit for the silence of the store.
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
    // The store lost places of this client, by a restart or after too long a silence: each
    // acquisition asks for its place again.
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

/** The heartbeats of this client, one for each name that it waits at. */
export class Heartbeats {
  readonly #client: ArbiterClient;
  readonly #byKey = new Map<string, WaiterHeartbeat>();

  constructor(client: ArbiterClient) {
    this.#client = client;
  }

  /** The acquisition is in the queue: keeps its place, and asks again when the holder is due. */
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

  /** Pushes may have been missed: asks at every name what became of its waiters. */
  sendAll(): void {
    for (const heartbeat of this.#byKey.values()) void heartbeat.send();
  }
}
