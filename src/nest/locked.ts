import { knownOptions } from "../options/known-options.js";
import { type AcquireOptions, OPTION_NAMES } from "../options/options.js";
import { type LockableMethod, type LockName, putUnderLock } from "./method-under-lock.js";

/** The options of `@Locked`: those of an acquisition, and the Holdfast that has the lock. */
export interface LockedOptions extends AcquireOptions {
  /** The name that the module was given. Default: the Holdfast without a name. */
  readonly holdfast?: string | undefined;
}

/**
 * Runs every call of an async method under a mutex, as `mutex(name, options).run` does: errors of
 * the method pass as they are, and `currentLease()` is its lease.
 */
export function Locked<A extends unknown[] = never[]>(
  name: LockName<A>,
  options?: LockedOptions,
): <M extends LockableMethod<A>>(
  target: object,
  key: string | symbol,
  descriptor: TypedPropertyDescriptor<M>,
) => void {
  const { holdfast, ...defaults } = knownOptions(options, ["holdfast", ...OPTION_NAMES]);
  return (target, key, descriptor) => {
    putUnderLock("Locked", target, key, descriptor, {
      name,
      holdfast,
      run: (locks, lockName, call) => locks.mutex(lockName, defaults).run(call),
    });
  };
}
