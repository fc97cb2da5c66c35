/**
 * No program relies on a lease after the store has ended its entry, because the time of the session
 * was over; nor after its process was told that the grant has ended: even where no other program
 * came to hold the lock meanwhile.
 */
import type { Entry, EntryOf } from "../history.js";
import { type Life, livesOf } from "./life.js";
import { StoreAccount, toldMsOf } from "./store-account.js";
import type { Violation } from "./violation.js";

export function checkBelief(entries: readonly Entry[]): Violation[] {
  const lapsed = new Map<string, EntryOf<"lapsed">>();
  for (const entry of entries) {
    if (entry.type === "lapsed") lapsed.set(keyOf(entry), entry);
  }
  return [...livesOf(entries).values()].flatMap((life) => {
    const { held } = life;
    const end = held && lapsed.get(keyOf(held));
    const untilMs = reliedUntilMs(life);
    if (!end || untilMs <= end.atMs) return [];
    const { lease, name, atMs: fromMs } = held;
    const longMs = (untilMs - end.atMs).toFixed(1);
    const message = `${lease} relied on "${name}" ${longMs} ms longer than its entry lived`;
    return [{ checker: "belief", message, name, fromMs, toMs: untilMs }];
  });
}

/** No lease is relied on after the turn in which its process was told of its end. */
export function checkToldEnds(entries: readonly Entry[]): Violation[] {
  const account = new StoreAccount(entries);
  return [...livesOf(entries).values()].flatMap((life) => {
    if (!life.held) return [];
    const { lease, name, process, atMs: fromMs } = life.held;
    const toldMs = toldMsOf(account.grantOf(life.held), process);
    const untilMs = reliedUntilMs(life);
    if (untilMs <= toldMs) return [];
    const longMs = (untilMs - toldMs).toFixed(1);
    const message = `${lease} relied on "${name}" ${longMs} ms after it was told of its end`;
    return [{ checker: "told ends", message, name, fromMs, toMs: untilMs }];
  });
}

function reliedUntilMs({ endedMs, beliefs }: Life): number {
  return Math.min(endedMs, beliefs.at(-1)?.untilMs ?? Number.POSITIVE_INFINITY);
}

function keyOf({ name, token }: { readonly name: string; readonly token: bigint }): string {
  return `${token} ${name}`;
}
