import { InternalError } from "./index.js";

/**
 * Ends the call or lease at hand with an `InternalError` when a rule of this package is broken. The
 * rule is a sentence that must be true.
 */
export function assert(isTrue: boolean, rule: string): asserts isTrue {
  if (!isTrue) throw new InternalError(rule);
}

/** The value itself, which by the rule is always there. */
export function present<T>(value: T | null | undefined, rule: string): T {
  if (value === null || value === undefined) throw new InternalError(rule);
  return value;
}
