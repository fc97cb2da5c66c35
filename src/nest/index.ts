/** Locks for NestJS 11 or newer: a module, and decorators for the methods of its providers. */
export { currentLease } from "../locks/run-scopes.js";
export {
  HoldfastModule,
  type HoldfastModuleAsyncOptions,
  type HoldfastModuleOptions,
  type HoldfastPlace,
  type HoldfastSettings,
} from "./holdfast-module.js";
export { Locked, type LockedOptions } from "./locked.js";
export type { LockableMethod, LockName } from "./method-under-lock.js";
export { Once, type OnceMethodOptions, type Skippable } from "./once.js";
export { holdfastToken, InjectHoldfast } from "./token.js";
