import type { OnceOptions } from "../locks/once.js";
import { knownOptions } from "../options/known-options.js";
import { checkDuration, OPTION_NAMES } from "../options/options.js";
import type { LockedOptions } from "./locked.js";
import { type LockableMethod, type LockName, putUnderLock } from "./method-under-lock.js";

/** The options of `@Once`: those of `once`, and the Holdfast that has the mark. */
export interface OnceMethodOptions extends OnceOptions, Pick<LockedOptions, "holdfast"> {}

/** Only methods whose result may be undefined: that of a call that was not run. */
export type Skippable<M> = M extends (...args: never[]) => Promise<infer R>
  ? undefined extends R
    ? unknown
    : never
  : never;

/**
 * Runs an async method as `once` does: at least once for each name, and not again for `keepMs`
 * after a success. A call that finds it running or done returns undefined.
 */
export function Once<A extends unknown[] = never[]>(
  name: LockName<A>,
  options: OnceMethodOptions,
): <M extends LockableMethod<A>>(
  target: object,
  key: string | symbol,
  descriptor: TypedPropertyDescriptor<M & Skippable<M>>,
) => void {
  const names = ["holdfast", "keepMs", ...OPTION_NAMES] as const;
  const { holdfast, ...once } = knownOptions(options, names);
  checkDuration("keepMs", once.keepMs, 1);
  return (target, key, descriptor) => {
    putUnderLock("Once", target, key, descriptor, {
      name,
      holdfast,
      run: async (locks, lockName, call) => {
        const result = await locks.once(lockName, call, once);
        return result.ran ? result.value : undefined;
      },
    });
  };
}
