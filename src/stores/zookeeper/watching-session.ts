/**
 * The session that reads queues and watches them. It holds no entries: a resume of a session ends
 * the requests under way, and a session that holds is resumed at every renewal.
 */
import { TimeLimitError, within } from "../../time/timers.js";
import { zookeeperError } from "./failure.js";
import type { Connection } from "./wire/connection.js";
import type { Ensemble } from "./wire/ensemble.js";
import { sync } from "./wire/requests.js";
import { SessionClient } from "./wire/session-client.js";
import type { WatchListener } from "./wire/watch-table.js";

const TIMEOUT_MS = 10_000;

export class WatchingSession {
  readonly #ensemble: Ensemble;
  readonly #client: SessionClient;
  readonly #servers: string;

  constructor(ensemble: Ensemble, servers: string) {
    this.#ensemble = ensemble;
    this.#client = new SessionClient(ensemble, TIMEOUT_MS);
    this.#servers = servers;
  }

  /** Sends requests on one connection. One that does not answer in time is closed. */
  async use<T>(work: (connection: Connection) => Promise<T>, limitMs: number): Promise<T> {
    const { clock, timers } = this.#ensemble.port;
    const endMs = clock.nowMs() + limitMs;
    let connection: Connection | undefined;
    try {
      connection = await this.#client.connected(limitMs);
      return await within(timers, Math.max(1, endMs - clock.nowMs()), work(connection));
    } catch (error) {
      if (error instanceof TimeLimitError) connection?.close();
      throw zookeeperError(error, this.#servers);
    }
  }

  /** As `use`, on a server that has seen all that was committed before this call. */
  useLatest<T>(work: (connection: Connection) => Promise<T>, limitMs: number): Promise<T> {
    return this.use(async (connection) => {
      const upToDate = connection.send(sync("/"));
      const [, result] = await Promise.all([upToDate, work(connection)]);
      return result;
    }, limitMs);
  }

  unwatch(path: string, listener: WatchListener): void {
    this.#client.watches.remove(path, listener);
  }

  close(limitMs: number): Promise<void> {
    return this.#client.close(limitMs);
  }
}
