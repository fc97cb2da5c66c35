import { connect } from "node:net";
import { StoreError } from "../../errors.js";
import type { Address } from "../store-url.js";

/** A host that swallows what is sent to it shows no error by itself. */
const LIMIT_MS = 500;

/**
 * Why none of the servers can be reached; null where one can, or where none is known. Clients keep
 * the cause to themselves: some queue commands without a word while they reconnect, others tell
 * only that they are offline.
 */
export async function unreachable(servers: readonly Address[]): Promise<Error | null> {
  if (servers.length === 0) return null;
  const troubles = await Promise.all(servers.map(troubleOf));
  return troubles.includes(null) ? null : (troubles[0] ?? null);
}

function troubleOf({ host, port }: Address): Promise<Error | null> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: LIMIT_MS });
    const end = (trouble: Error | null): void => {
      resolve(trouble);
      socket.destroy();
    };
    socket.once("connect", () => end(null));
    socket.once("error", (error) => end(withText(error, host, port)));
    socket.once("timeout", () => {
      end(new Error(`connect to ${host}:${port}: no answer within ${LIMIT_MS} ms`));
    });
  });
}

/** A name with several addresses fails with one error for all of them, which has no text. */
function withText(error: Error, host: string, port: number): Error {
  if (error.message !== "") return error;
  const { code = "unknown" } = error as NodeJS.ErrnoException;
  return new Error(`connect ${code} ${host}:${port}`, { cause: error });
}

/** The error of a call that got no answer, with the reason why there was none. */
export function withReason(error: StoreError, servers: readonly Address[], why: Error): StoreError {
  const { outcome, retryable, lockName, store } = error;
  const places = servers.map(({ host, port }) => `${host}:${port}`).join(", ");
  const text = `${error.message} No Redis answers at ${places} (${why.message}).`;
  return new StoreError(text, { outcome, retryable, lockName, store, cause: why });
}
