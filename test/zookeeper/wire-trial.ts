import { Connection, type ConnectionSettings } from "../../src/stores/zookeeper/wire/connection.js";
import { exists, getChildren2, remove } from "../../src/stores/zookeeper/wire/requests.js";
import type { SessionRequest } from "../../src/stores/zookeeper/wire/session.js";
import { networkRuntime, type Runtime } from "../../src/time/runtime.js";

const OPEN_MS = 10_000;

export type Wish = Partial<ConnectionSettings> & Partial<SessionRequest> & { openMs?: number };

/** Connections to one port, which are closed at the end. */
export class WireTrial {
  readonly runtime: Runtime = networkRuntime();
  readonly #serverPort: number;
  readonly #connections: Connection[] = [];

  constructor(serverPort: number) {
    this.#serverPort = serverPort;
  }

  /** Begins to connect. */
  open({
    tls = null,
    chroot = "",
    credentials = [],
    openMs = OPEN_MS,
    ...wish
  }: Wish = {}): Connection {
    const connection = new Connection(
      { host: "127.0.0.1", port: this.#serverPort },
      { tls, chroot, credentials },
      { key: null, timeoutMs: 6_000, ...wish },
      { openMs, runtime: this.runtime },
    );
    this.#connections.push(connection);
    return connection;
  }

  async connect(wish: Wish = {}): Promise<Connection> {
    const connection = this.open(wish);
    await connection.opened;
    return connection;
  }

  /** Removes all znodes below a path, apart from those of the server. */
  async removeAll(connection: Connection, path: string): Promise<void> {
    if ((await connection.send(exists(path))).stat === null) return;
    const { names } = await connection.send(getChildren2(path));
    for (const name of names) {
      const child = path === "/" ? `/${name}` : `${path}/${name}`;
      if (child === "/zookeeper") continue;
      await this.removeAll(connection, child);
      await connection.send(remove(child)).catch(() => {});
    }
  }

  /** Ends the sessions that are open. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#connections.map((connection) => connection.endSession()));
  }
}
