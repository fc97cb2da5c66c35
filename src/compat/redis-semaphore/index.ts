/** The API of the package `redis-semaphore` 5, on the same keys: change the import. */
export type { CommandClient, ScriptClient } from "../script-client.js";
export { LostLockError, TimeoutError } from "./errors.js";
export type { Lock } from "./lock.js";
export { Mutex, RedlockMutex } from "./mutex.js";
export {
  defaultTimeoutOptions,
  type LockLostCallback,
  type LockOptions,
  type TimeoutOptions,
} from "./options.js";
export { MultiSemaphore, RedlockMultiSemaphore, RedlockSemaphore, Semaphore } from "./semaphore.js";
