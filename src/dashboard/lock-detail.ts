import type { LockView } from "../contract/store.js";
import type { Change, LockDetail } from "./message.js";
import { kindOf } from "./snapshot.js";
import { whoOf } from "./who.js";

/** A page shows so many holders and waiters of one lock, and counts the rest. */
const MAX_SHOWN = 100;

/** One lock for its own page, with the tokens of its holders whose renewals are late. */
export function lockDetail(
  view: LockView,
  late: ReadonlySet<bigint>,
  changes: readonly Change[],
): LockDetail {
  const { space, name, holders, waiters, mark } = view;
  return {
    space,
    name,
    kind: kindOf(view),
    holders: holders
      .slice(0, MAX_SHOWN)
      .map(({ token, mode, weight, meta, heldMs, remainingMs }) => ({
        ...whoOf(meta),
        token: `${token}`,
        mode,
        weight,
        heldMs,
        remainingMs,
        isLate: late.has(token),
      })),
    holderCount: holders.length,
    waiters: waiters.slice(0, MAX_SHOWN).map(({ mode, weight, meta, waitedMs }) => ({
      ...whoOf(meta),
      mode,
      weight,
      waitedMs,
    })),
    waiterCount: waiters.length,
    mark: mark && {
      ...whoOf(mark.meta),
      token: `${mark.token}`,
      remainingMs: mark.remainingMs,
    },
    changes,
  };
}
