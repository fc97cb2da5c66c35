import { systemTimers } from "../time/timers.js";
import type { Address } from "./store-url.js";

/** A host that drops all packets causes no error by itself. */
const LIMIT_MS = 500;

/**
 * Why none of the servers can be reached; null where one can, or where none is known. Clients do
 * not report the cause: some queue commands silently while they reconnect, some say only that they
 * are offline.
 */
export async function unreachable(servers: readonly Address[]): Promise<Error | null> {
  if (servers.length === 0) return null;
  const troubles = await Promise.all(servers.map(troubleOf));
  return troubles.includes(null) ? null : (troubles[0] ?? null);
}

function troubleOf({ host, port }: Address): Promise<Error | null> {
  return new Promise((resolve) => {
    const { connect } = process.getBuiltinModule("node:net");
    const socket = connect({ host, port, timeout: LIMIT_MS });
    const end = (trouble: Error | null): void => {
      resolve(trouble);
      socket.destroy();
    };
    socket.once("connect", () => end(null));
    socket.once("error", (error) => end(withText(error, host, port)));
    socket.once("timeout", () => {
      const silence = new Error(`connect to ${host}:${port}: no answer within ${LIMIT_MS} ms`);
      // If the event loop was blocked, an answer may be there, unread.
      systemTimers.after(1, () => end(silence), true);
    });
  });
}

/** A host name with several addresses fails with one error for all addresses, without a text. */
function withText(error: Error, host: string, port: number): Error {
  if (error.message !== "") return error;
  const { code = "unknown" } = error as NodeJS.ErrnoException;
  return new Error(`connect ${code} ${host}:${port}`, { cause: error });
}
