import type { Timer } from "../../time/timers.js";
import type { ArbiterClient } from "./arbiter-client.js";

/**
 * The heartbeats of a client for names that it released. The handoff may have gone to a process
 * that died, and the store serves a long queue in slices. In both cases a heartbeat of the client
 * that released makes the store go on.
 */
export class HandoffChecks {
  readonly #client: ArbiterClient;
  /** Names whose last handoff will be checked, with their timers. */
  readonly #checks = new Map<string, Timer>();
  /** Names where the store has more waiters to serve. */
  readonly #unserved = new Set<string>();
  #isOver = false;

  constructor(client: ArbiterClient) {
    this.#client = client;
  }

  /** Sends one heartbeat after the offer window, in case the handoff was not confirmed. */
  checkAfter(key: string, offerMs: number): void {
    if (this.#isOver || this.#checks.has(key)) return;
    const timer = this.#client.runtime.timers.after(offerMs + 1, () => {
      this.#checks.delete(key);
      void this.#heartbeat(key);
    });
    this.#checks.set(key, timer);
  }

  /** Sends heartbeats until the store has no more waiters to serve at this name. */
  serveMore(key: string): void {
    if (this.#isOver || this.#unserved.has(key)) return;
    this.#unserved.add(key);
    this.#client.runtime.timers.after(0, () => {
      this.#unserved.delete(key);
      void this.#heartbeat(key);
    });
  }

  end(): void {
    this.#isOver = true;
    for (const timer of this.#checks.values()) timer.cancel();
  }

  async #heartbeat(key: string): Promise<void> {
    const { id, batcher, acquisitions } = this.#client;
    try {
      const answer = await batcher.send({ type: "heartbeat", key, client: id });
      acquisitions.onHeartbeatReply(key, answer);
      if (answer.reply.more) this.serveMore(key);
    } catch {
      // The waiters' own heartbeats also make the store go on, only later.
    }
  }
}
