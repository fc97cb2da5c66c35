import { InvalidOptionError } from "../../../errors/index.js";
import type { Address } from "../../store-url.js";

/** The servers and the chroot of a connect string, such as `a:2181,b:2181/app`. */
export interface ConnectTarget {
  readonly servers: readonly Address[];
  /** "" or such as "/app". */
  readonly chroot: string;
}

const USUAL_PORT = 2181;
const MAX_PORT = 65_535;

/** Throws `InvalidOptionError`. A server without a port has the usual one, 2181. */
export function parseConnectString(text: string): ConnectTarget {
  const slash = text.indexOf("/");
  const hosts = slash < 0 ? text : text.slice(0, slash);
  const path = slash < 0 ? "" : text.slice(slash);
  const servers = hosts.split(",").map((server) => {
    const match = /^(?:\[([\da-f:.]+)\]|([^:[\]\s]+))(?::(\d+))?$/i.exec(server.trim());
    const [, address, name, port = USUAL_PORT] = match ?? [];
    if (!match || Number(port) > MAX_PORT) {
      throw new InvalidOptionError("servers", text, "must be as host:port,host:port/chroot");
    }
    return { host: address ?? name ?? "", port: Number(port) };
  });
  return { servers, chroot: parseChroot(path) };
}

/** Throws `InvalidOptionError` where it is no path of a znode. "/" is no chroot. */
export function parseChroot(path: string): string {
  if (path === "" || path === "/") return "";
  if (/^(\/(?!\.{1,2}(\/|$))[^/\0]+)+$/.test(path)) return path;
  throw new InvalidOptionError("chroot", path, "must be a path such as /app, without . and ..");
}
