/** The state of one server, by the four-letter word `srvr`, which servers answer by default. */
import type { Port } from "../../../time/port.js";
import type { Address } from "../../store-url.js";
import type { ConnectionSettings } from "./connection.js";
import { openSocket } from "./server-socket.js";
import { ZookeeperError } from "./zookeeper-error.js";

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
  { limitMs, port }: { readonly limitMs: number; readonly port: Port },
): Promise<ServerStatus> {
  return new Promise((resolve, reject) => {
    let text = "";
    const end = (code: "silent" | "connection_lost", message: string, cause?: unknown): void => {
      timer.cancel();
      socket.destroy();
      const where = `${address.host}:${address.port}`;
      reject(new ZookeeperError(code, "unknown", `${where}: ${message}`, cause));
    };
    const timer = port.timers.after(limitMs, () => end("silent", "no answer to srvr"), true);
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
