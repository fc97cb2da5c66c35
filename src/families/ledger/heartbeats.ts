import type { Acquisition } from "./acquisition.js";
import type { ArbiterClient } from "./arbiter-client.js";
import { WaiterHeartbeat } from "./waiter-heartbeat.js";

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
  touchAll(): void {
    for (const heartbeat of this.#byKey.values()) void heartbeat.touch();
  }
}
