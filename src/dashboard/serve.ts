import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { knownOptions } from "../options/known-options.js";
import { type Dashboard, dashboard } from "./dashboard.js";
import type { DashboardOptions, ShownLocks } from "./options.js";

/** How a dashboard with a server of its own is shown. */
export interface ServeOptions
  extends Pick<DashboardOptions, "allowRevoke" | "onAudit" | "everyMs" | "title"> {
  /** The port at 127.0.0.1. Default: a free one. */
  readonly port?: number | undefined;
  /** The name for the audit: all who have the URL are one actor. Default `dashboard`. */
  readonly actor?: string | undefined;
}

/** A dashboard that is being served. */
export interface ServedDashboard {
  /** Where to find it. The token in its fragment is a secret: a browser does not send it on. */
  readonly url: string;
  /** Ends the server and all streams. The locks stay open. */
  close(): Promise<void>;
}

const ADDRESS = "127.0.0.1";
const NAMES = ["allowRevoke", "onAudit", "everyMs", "title", "port", "actor"] as const;

/**
 * Serves a dashboard to browsers of this machine, to those that know the token of its URL.
 *
 * @example
 * import { serveDashboard } from "holdfast/dashboard";
 *
 * const board = await serveDashboard(locks);
 * console.log(board.url);
 */
export async function serveDashboard(
  locks: ShownLocks,
  options: ServeOptions = {},
): Promise<ServedDashboard> {
  const { port = 0, actor = "dashboard", ...shown } = knownOptions(options, NAMES);
  const token = randomBytes(32).toString("base64url");
  const authorize = (request: Request): string | null =>
    isSame(request.headers.get("authorization") ?? "", `Bearer ${token}`) ? actor : null;
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port, host: ADDRESS, exclusive: true }, () => resolve());
  });
  const bound = (server.address() as AddressInfo).port;
  const hosts = [`${ADDRESS}:${bound}`, `localhost:${bound}`];
  const board = mounted(() => dashboard(locks, { ...shown, authorize, hosts }), server);
  server.on("request", board.handleNode);
  return {
    url: `http://${ADDRESS}:${bound}/#token=${token}`,
    close: async () => {
      board.close();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Options that are refused leave no server behind. */
function mounted(make: () => Dashboard, server: Server): Dashboard {
  try {
    return make();
  } catch (error) {
    server.close();
    throw error;
  }
}

/** In a time that does not depend on where they differ. */
function isSame(given: string, wanted: string): boolean {
  const sum = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(sum(given), sum(wanted));
}
