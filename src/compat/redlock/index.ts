/** The API of the package `redlock` 5.0.0-beta.2, on the same keys: change the import. */
export type { Votes } from "../client-quorum.js";
export type { CommandClient, ScriptClient } from "../script-client.js";
export type { RedlockAbortSignal } from "./automatic-renewal.js";
export { ExecutionError, ResourceLockedError } from "./errors.js";
export {
  type Client,
  type ClientExecutionResult,
  type ExecutionResult,
  type ExecutionStats,
  Lock,
} from "./lock.js";
export { Redlock as default } from "./redlock.js";
export type { Settings } from "./settings.js";
