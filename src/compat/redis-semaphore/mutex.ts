import type { ScriptClient } from "../script-client.js";
import { mutexLayout } from "./holding.js";
import { Lock } from "./lock.js";
import { clientOf, clientsOf, keyOf, type LockOptions } from "./options.js";

/**
 * A mutex at the key `mutex:<key>` of one server.
 *
 * @example
 * import { Mutex } from "holdfast/compat/redis-semaphore";
 *
 * const mutex = new Mutex(redis, "invoice:42", { lockTimeout: 10_000 });
 * await mutex.acquire();
 * try {
 *   while (mutex.isAcquired) await save("a step");
 * } finally {
 *   await mutex.release();
 * }
 */
export class Mutex extends Lock {
  /** Throws where the client or the key is missing. */
  constructor(client: ScriptClient, key: string, options?: LockOptions) {
    super("mutex", [clientOf(client)], mutexLayout(keyOf(key)), options);
  }
}

/** A mutex on a majority of independent servers. */
export class RedlockMutex extends Lock {
  /** Throws where the clients or the key are missing. */
  constructor(clients: ScriptClient[], key: string, options?: LockOptions) {
    super("redlock-mutex", clientsOf(clients), mutexLayout(keyOf(key)), options);
  }
}
