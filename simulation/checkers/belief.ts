/**
 * No program relies on a lease after the store has ended its entry, because the time of the session
 * was over: even where no other program came to hold the lock meanwhile.
 */
import type { Entry, EntryOf } from "../history.js";
import { livesOf } from "./life.js";
import type { Violation } from "./violation.js";

export function checkBelief(entries: readonly Entry[]): Violation[] {
  const lapsed = new Map<string, EntryOf<"lapsed">>();
  for (const entry of entries) {
    if (entry.type === "lapsed") lapsed.set(keyOf(entry), entry);
  }
  return [...livesOf(entries).values()].flatMap(({ held, endedMs, beliefs }) => {
    const end = held && lapsed.get(keyOf(held));
    const untilMs = Math.min(endedMs, beliefs.at(-1)?.untilMs ?? Number.POSITIVE_INFINITY);
    if (!end || untilMs <= end.atMs) return [];
    const { lease, name, atMs: fromMs } = held;
    const longMs = (untilMs - end.atMs).toFixed(1);
    const message = `${lease} relied on "${name}" ${longMs} ms longer than its entry lived`;
    return [{ checker: "belief", message, name, fromMs, toMs: untilMs }];
  });
}

function keyOf({ name, token }: { readonly name: string; readonly token: bigint }): string {
  return `${token} ${name}`;
}
