/** The API of the package `redlock` 4.2, on the same keys: change the import. */
export type { CommandClient, ScriptClient } from "../script-client.js";
export { type Callback, Lock, LockError } from "./lock.js";
export {
  type Disposer,
  type LockOptions,
  type Options,
  Redlock as default,
  // Programs in CommonJS get the class itself by `require`.
  Redlock as "module.exports",
} from "./redlock.js";
