/** Records as the script keeps them (lua/records.lua), and as it sends them in replies. */
import { oneOf, whole } from "../../foreign-data.js";
import { type Mode, NO_LIMIT } from "../../rules/fits.js";
import type { HolderEntry, WaiterEntry } from "../../rules/ledger-command.js";
import { FRESH, FULL, RAISED, REQUEST, WAITER } from "./script.generated.js";

/** A field of a record that lua/records.lua declares. */
function field(text: string, [start, end]: readonly [number, number?]): string {
  return text.slice(start, end);
}

/** A holder in one of the forms in which the script keeps it. */
export function readHolder(text: string, nowUs: number): HolderEntry {
  const form = oneOf(["f", "+", "h", "u"], text[0]);
  const record = form === "f" ? FRESH : form === "+" ? RAISED : FULL;
  const grantedUs = whole(field(text, FULL.granted));
  const { ttlUs, ...asked } = readRequest(field(text, record.request));
  const expiresUs = record === FULL ? whole(field(text, FULL.expiry)) : grantedUs + ttlUs;
  return {
    ...asked,
    token: record === FRESH ? grantedUs : whole(field(text, FULL.token)),
    heldUs: nowUs - grantedUs,
    remainingUs: expiresUs - nowUs,
  };
}

/** When the only holder of a name expires, by its text in the register; NaN for another text. */
export function expiryUs(text: string): number {
  const form = text[0];
  if (form === "h") return Number(field(text, FULL.expiry));
  if (form !== "f" && form !== "+") return Number.NaN;
  const { ttl } = form === "f" ? FRESH : RAISED;
  return Number(field(text, FULL.granted)) + Number(field(text, ttl));
}

export function readWaiter(text: string, nowUs: number): WaiterEntry {
  const { mode, weight, limit, meta } = readRequest(field(text, WAITER.request));
  return { mode, weight, limit, meta, waitedUs: nowUs - whole(field(text, WAITER.since)) };
}

/** The part of an acquire that the script keeps. */
function readRequest(text: string): {
  ttlUs: number;
  mode: Mode;
  weight: number;
  limit: number;
  span: number;
  meta: string;
} {
  const ttlUs = whole(field(text, REQUEST.ttl));
  const letter = oneOf(["x", "e", "s"], field(text, REQUEST.letter));
  const mode = letter === "s" ? "shared" : "exclusive";
  const span = whole(field(text, REQUEST.span));
  const [, afterTimes] = words(field(text, REQUEST.words), 4);
  if (letter === "x") {
    return { ttlUs, mode, weight: 1, limit: NO_LIMIT, span, meta: afterTimes };
  }
  const [[weight, limit], meta] = words(afterTimes, 2);
  return { ttlUs, mode, weight: whole(weight), limit: whole(limit), span, meta };
}

/** The first words, and the text that follows them. */
export function words(text: string, count: number): [readonly string[], string] {
  const found: string[] = [];
  let start = 0;
  for (let index = 0; index < count; index += 1) {
    const end = text.indexOf(" ", start);
    found.push(text.slice(start, end < 0 ? undefined : end));
    start = end < 0 ? text.length : end + 1;
  }
  return [found, text.slice(start)];
}
