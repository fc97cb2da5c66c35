/** The servers that a client knows. Connections go to one of them until it fails. */
import { present } from "../../errors/assert.js";
import { InvalidOptionError } from "../../errors/index.js";
import { Backoff } from "../../time/backoff.js";
import { pause } from "../../time/pause.js";
import type { Runtime } from "../../time/runtime.js";
import type { Address } from "../store-url.js";
import { hasCode, ZookeeperError } from "./errors.js";
import { Connection, type ConnectionSettings, openSocket } from "./wire/connection.js";
import type { SessionRequest } from "./wire/session.js";

const RETRY_MS = { firstMs: 50, longestMs: 1_000 };
/** A server that does not answer within this, or its part of the timeout, is passed over. */
const MIN_OPEN_MS = 500;

export class Ensemble {
  readonly settings: ConnectionSettings;
  readonly runtime: Runtime;
  readonly addresses: readonly Address[];
  #at: number;
  #failure: unknown;

  /** Begins at a random server, so that clients spread over all of them. */
  constructor(addresses: readonly Address[], settings: ConnectionSettings, runtime: Runtime) {
    if (settings.credentials.some(({ scheme }) => scheme === "sasl")) {
      throw new InvalidOptionError("credentials", "sasl", "must not have SASL: use digest, or TLS");
    }
    this.settings = settings;
    this.runtime = runtime;
    this.addresses = addresses;
    this.#at = Math.floor(runtime.random.fraction() * addresses.length);
  }

  /**
   * Opens or resumes a session on the first server that does so within `limitMs`. Throws
   * `session_expired`, `auth_failed` and `sasl_required` at once, since every server would answer
   * so, and `not_connected` when the time is up. The caller keeps the process alive, if at all.
   */
  async connect(request: SessionRequest, limitMs: number): Promise<Connection> {
    const { clock, timers, random } = this.runtime;
    const endMs = clock.nowMs() + limitMs;
    const backoff = new Backoff(random, RETRY_MS);
    const count = this.addresses.length;
    for (let tries = 1; ; tries += 1) {
      const restMs = endMs - clock.nowMs();
      const openMs = Math.min(restMs, Math.max(MIN_OPEN_MS, request.timeoutMs / count));
      const connection = this.open(request, openMs);
      try {
        await connection.opened;
        return connection;
      } catch (error) {
        if (hasCode(error, "session_expired", "auth_failed", "sasl_required")) throw error;
        this.#failure = error;
        this.moveFrom(connection.address);
        const pauseMs = tries % count === 0 ? backoff.nextMs() : 0;
        if (clock.nowMs() + pauseMs >= endMs) throw this.notConnected();
        if (pauseMs > 0) await pause(timers, pauseMs);
      }
    }
  }

  /** The server that the next connection goes to. */
  get current(): Address {
    return present(this.addresses[this.#at], "an ensemble has a server");
  }

  /** Begins to connect to a server, for a caller that sends before the session opens. */
  open(request: SessionRequest, openMs: number, address: Address = this.current): Connection {
    const connection = new Connection(address, this.settings, request, {
      openMs,
      runtime: this.runtime,
    });
    connection.opened.then(
      () => {
        this.#failure = undefined;
      },
      () => {},
    );
    return connection;
  }

  /** The next connection goes to another server, unless one has moved on from here already. */
  moveFrom(address: Address): void {
    if (this.addresses[this.#at] === address) this.#at = (this.#at + 1) % this.addresses.length;
  }

  /** Why the last attempt to connect failed; null after one that succeeded. */
  get trouble(): ZookeeperError | null {
    return this.#failure === undefined ? null : this.notConnected();
  }

  /** The error of a caller that waited in vain, with the latest failure of a server. */
  notConnected(): ZookeeperError {
    const why = this.#failure instanceof Error ? ` (${this.#failure.message})` : "";
    const message = `no server could be reached in time${why}`;
    return new ZookeeperError("not_connected", "not_sent", message, this.#failure);
  }
}

/** The state of one server, by the four-letter word `srvr`, which servers answer by default. */

export type ServerMode = "leader" | "follower" | "observer" | "standalone" | "read_only";

export interface ServerStatus {
  /** Such as "3.8.0"; null where the server does not say. */
  readonly version: string | null;
  /** Null: the server serves no requests now, or does not answer `srvr`. */
  readonly mode: ServerMode | null;
}

const MODES: Readonly<Record<string, ServerMode>> = {
  leader: "leader",
  follower: "follower",
  observer: "observer",
  standalone: "standalone",
  "read-only": "read_only",
};
const MAX_CHARACTERS = 64 * 1024;

/** Asks a server on a connection of its own. Rejects where it does not answer in time. */
export function askStatus(
  address: Address,
  { tls, openSocket: open = openSocket }: Pick<ConnectionSettings, "tls" | "openSocket">,
  { limitMs, runtime }: { readonly limitMs: number; readonly runtime: Runtime },
): Promise<ServerStatus> {
  return new Promise((resolve, reject) => {
    let text = "";
    const end = (code: "silent" | "connection_lost", message: string, cause?: unknown): void => {
      timer.cancel();
      socket.destroy();
      const where = `${address.host}:${address.port}`;
      reject(new ZookeeperError(code, "unknown", `${where}: ${message}`, cause));
    };
    const timer = runtime.timers.after(limitMs, () => end("silent", "no answer to srvr"), true);
    const socket = open(address, tls, () => socket.write(Buffer.from("srvr")));
    socket.on("data", (part) => {
      text += part.toString("latin1");
      if (text.length > MAX_CHARACTERS) end("connection_lost", "no answer to srvr");
    });
    socket.on("error", (error) => end("connection_lost", error.message, error));
    socket.on("close", () => {
      if (text === "") return end("connection_lost", "no answer to srvr");
      timer.cancel();
      resolve(readStatus(text));
    });
  });
}

function readStatus(text: string): ServerStatus {
  const [, version = null] = /^Zookeeper version: ([\d.]+)/m.exec(text) ?? [];
  const [, mode = ""] = /^Mode: ([\w-]+)$/m.exec(text) ?? [];
  return { version, mode: MODES[mode] ?? null };
}
