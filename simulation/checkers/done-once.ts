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
import { StoreAccount } from "./store-account.js";
import type { Violation } from "./violation.js";

/** How much faster the store's clock may run. */
const CLOCK_TOLERANCE = 1.01;

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
    if (before.atMs < calmMs && wasOver(lives.get(entry.lease))) continue;
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

function wasOver(life: Life | undefined): boolean {
  const { held, beliefs } = life ?? {};
  return held != null && (beliefs?.[0]?.untilMs ?? 0) <= held.atMs;
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
  const endMs = Math.min(untilMs, done.atMs, grant?.revokedMs ?? untilMs);
  if (account.hasForgotten(held.atMs, endMs) || account.steppedAheadMs(held.atMs, endMs) > 0)
    return false;
  return account.withdrawals(held, releasing.atMs, endMs) > 0;
}

function endOf({ atMs, untilMs }: EntryOf<"done">, nowMs: number, account: StoreAccount): number {
  if (account.hasForgotten(atMs, nowMs)) return Number.NEGATIVE_INFINITY;
  return untilMs - account.steppedAheadMs(atMs, nowMs);
}

function shortened(done: EntryOf<"done">): EntryOf<"done"> {
  return { ...done, untilMs: done.atMs + (done.untilMs - done.atMs) / CLOCK_TOLERANCE };
}
