/**
 * The work of a `once` is not done again while the store keeps its mark.
 *
 * Excused is work whose mark is not there:
 * - before all is calm, the store may not have received the release that leaves the mark while the
 *   lease lived;
 * - the store forgot the mark;
 * - the store's clock jumped ahead, which ends the mark earlier by as much.
 * So is a lease of before the mark that had ended when its frozen process got it.
 */
import type { Entry, EntryOf } from "../history.js";
import { type Life, livesOf } from "./life.js";
import { CLOCK_TOLERANCE, StoreAccount } from "./store-account.js";
import type { Violation } from "./violation.js";

export function checkDoneOnce(entries: readonly Entry[]): Violation[] {
  const account = new StoreAccount(entries);
  const lives = livesOf(entries);
  const calmMs = entries.find(({ type }) => type === "calm")?.atMs ?? Number.POSITIVE_INFINITY;
  const done = new Map<string, EntryOf<"done">>();
  const violations: Violation[] = [];
  for (const entry of entries) {
    if (entry.type === "done") {
      if (entry.atMs >= calmMs) done.set(entry.name, entry);
      else if (wasMarked(entry, lives, account)) done.set(entry.name, shortened(entry));
    }
    if (entry.type !== "held") continue;
    const before = done.get(entry.name);
    if (!before || entry.atMs >= endOf(before, entry.atMs, account)) continue;
    if (before.atMs < calmMs && wasOver(entry, before, lives, account)) continue;
    violations.push({
      checker: "done once",
      message: `${entry.lease} repeats the work of "${entry.name}" that ${before.lease} did`,
      name: entry.name,
      fromMs: before.atMs,
      toMs: entry.atMs,
    });
  }
  return violations;
}

function wasOver(
  held: EntryOf<"held">,
  done: EntryOf<"done">,
  lives: ReadonlyMap<string, Life>,
  account: StoreAccount,
): boolean {
  const [belief] = lives.get(held.lease)?.beliefs ?? [];
  const grantedMs = account.grantOf(held)?.granted.atMs ?? Number.POSITIVE_INFINITY;
  return grantedMs < done.atMs && belief !== undefined && belief.untilMs <= held.atMs;
}

/** The store executed the release while the lease lived, and before the program went on. */
function wasMarked(
  done: EntryOf<"done">,
  lives: ReadonlyMap<string, Life>,
  account: StoreAccount,
): boolean {
  const { held, releasing, beliefs } = lives.get(done.lease) ?? {};
  const untilMs = beliefs?.findLast((belief) => belief.untilMs > belief.atMs)?.untilMs;
  if (!held || !releasing || untilMs === undefined) return false;
  const grant = account.grantOf(held);
  const aheadMs = account.steppedAheadMs(held.atMs, untilMs) * CLOCK_TOLERANCE;
  const endMs = Math.min(untilMs - aheadMs, done.atMs, grant?.revokedMs ?? untilMs);
  if (account.hasForgotten(held.atMs, endMs)) return false;
  return account.withdrawals(held, releasing.atMs, endMs) > 0;
}

function endOf({ atMs, untilMs }: EntryOf<"done">, nowMs: number, account: StoreAccount): number {
  if (account.hasForgotten(atMs, nowMs)) return Number.NEGATIVE_INFINITY;
  return untilMs - account.steppedAheadMs(atMs, nowMs);
}

function shortened(done: EntryOf<"done">): EntryOf<"done"> {
  return { ...done, untilMs: done.atMs + (done.untilMs - done.atMs) / CLOCK_TOLERANCE };
}
