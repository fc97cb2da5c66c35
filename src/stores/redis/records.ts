/** Records as the scripts keep them (lua/rules.lua), and as they send them in replies. */
import { oneOf, Unreadable, whole } from "../../events/foreign-data.js";
import { NO_LIMIT } from "../../rules/fits.js";
import type { HolderEntry, WaiterEntry } from "../../rules/ledger-command.js";

/** Where the request begins in each record. */
const IN_ENTRY = 49;
const IN_WAITER = 16;

/** The state of a name in the register. */
export function readEntry(text: string): {
  grantedUs: number;
  token: number;
  expiryUs: number;
} {
  const flag = oneOf(["H", "Q", "O"], text[0]);
  const length = flag === "O" ? text.slice(69, 85) : text.slice(49, 65);
  const [startUs, lengthUs] = [whole(text.slice(1, 17)), whole(length)];
  const [grantedUs, token] = [whole(text.slice(17, 33)), whole(text.slice(33, 49))];
  return { grantedUs, token, expiryUs: whole(startUs + lengthUs) };
}

export function readHolder(text: string, nowUs: number): HolderEntry {
  const { grantedUs, token, expiryUs } = readEntry(text);
  const asked = readRequest(text.slice(IN_ENTRY));
  return { ...asked, token, heldUs: nowUs - grantedUs, remainingUs: expiryUs - nowUs };
}

/** Whether all that is known of a name is a holder that has expired. */
export function isOver(text: string, nowUs: number): boolean {
  if (text[0] !== "H") return false;
  try {
    return readEntry(text).expiryUs <= nowUs;
  } catch (error) {
    if (error instanceof Unreadable) return false;
    throw error;
  }
}

export function readWaiter(text: string, nowUs: number): WaiterEntry {
  const { mode, weight, limit, meta } = readRequest(text.slice(IN_WAITER));
  return { mode, weight, limit, meta, waitedUs: nowUs - whole(text.slice(0, IN_WAITER)) };
}

/** The part of an acquire that the script keeps. */
function readRequest(text: string): Omit<HolderEntry, "token" | "heldUs" | "remainingUs"> {
  const letter = oneOf(["x", "e", "s"], text[52]);
  const mode = letter === "s" ? "shared" : "exclusive";
  const span = whole(text.slice(16, 20));
  const [, rest] = words(text.slice(53), 2);
  if (letter === "x") return { mode, weight: 1, limit: NO_LIMIT, span, meta: rest };
  const [[weight, limit], meta] = words(rest, 2);
  return { mode, weight: whole(weight), limit: whole(limit), span, meta };
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
