/**
 * How commands and replies travel: an operation and flat strings there, one string per command back
 * (lists only for views). Numbers are decimal strings both ways, because Lua's own formatting of
 * large numbers loses digits; free text stands last, so that nothing in it has to be escaped.
 */
import { oneOf, text as textOf, Unreadable, whole } from "../../foreign-data.js";
import { cutOff } from "../../rules/bounds.js";
import { type Mode, NO_LIMIT } from "../../rules/fits.js";
import type {
  Acquire,
  Command,
  HolderEntry,
  MarkEntry,
  Push,
  PushedGrant,
  Reply,
  Touched,
  View,
  WaiterEntry,
} from "../../rules/ledger-command.js";
import { FRESH, FULL, RAISED, REQUEST, WAITER } from "./script.generated.js";

/**
 * A command as the script reads it: the letter of its operation, fixed fields, free text last. A
 * client goes by the name of its channel there.
 */
export function encode(command: Command, channelPrefix: string): string {
  switch (command.type) {
    case "acquire":
      return encodeAcquire(command, channelPrefix);
    case "confirm":
      return `c${command.owner} `;
    case "renew": {
      const { owner, ttlUs, notAfterUs, seenToken, heir } = command;
      const terms = `${fromZero(notAfterUs)}${fromZero(seenToken)}${digits(ttlUs)}${owner} `;
      return heir === undefined ? `n${terms}` : `m${terms}${channelPrefix}${heir}`;
    }
    case "release": {
      const { owner, tombstoneUs, keep } = command;
      if (!keep && !(tombstoneUs > 0)) return `r${owner} `;
      const untilUs = tombstoneUs > 0 ? fromZero(tombstoneUs) : 0;
      const keepUs = keep ? cutOff(keep.ttlUs) : "";
      return `d${untilUs} ${keepUs} ${owner} ${keep?.meta ?? ""}`;
    }
    case "touch":
      return `t${channelPrefix}${command.client}`;
    case "inspect":
      return "i";
    case "revoke":
      return `v${count(command.token)} ${command.reason}`;
  }
}

function encodeAcquire(command: Acquire, channelPrefix: string): string {
  const { owner, client, mode, weight, limit, ttlUs, offerUs, span, touchUs, meta } = command;
  const isPlain = mode === "exclusive" && weight === 1 && limit === NO_LIMIT && span === 1;
  const letter = isPlain ? "x" : mode === "exclusive" ? "e" : "s";
  // A capital letter may wait.
  const operation = command.enqueue ? letter.toUpperCase() : letter;
  const detail = isPlain ? "" : `${count(weight)} ${count(limit)} ${count(span)} `;
  const times = fromZero(command.notAfterUs) + fromZero(command.seenToken) + digits(ttlUs);
  const patience = `${carried(offerUs)} ${carried(touchUs)}`;
  const words = `${owner} ${channelPrefix}${client} ${patience} ${detail}`;
  return operation + times + letter + words + meta;
}

const MOST = Number.MAX_SAFE_INTEGER;

/** Sixteen digits: the script compares times as strings. */
function digits(value: number): string {
  return `${carried(value)}`.padStart(16, "0");
}

/** For what is compared, where less than nothing is as good as nothing. */
function fromZero(value: number): string {
  return digits(Math.max(0, Math.floor(value)));
}

/** A value that is no whole number from 0 is sent as the highest, which the script refuses. */
function carried(value: number): number {
  return Number.isInteger(value) && value >= 0 && value <= MOST ? value : MOST;
}

/** The same for a count, where the script allows the highest but not 0. */
function count(value: number): number {
  return Number.isSafeInteger(value) && value >= 1 ? value : 0;
}

/** The letters of the replies that each command may have; an inspect is answered by lists. */
const LETTERS: Record<Exclude<Command["type"], "inspect">, string> = {
  acquire: "GgQBMLEU",
  confirm: "NO",
  renew: "NOLU",
  release: "RrSs",
  touch: "Tt",
  revoke: "V",
};

/** The reply to a command, at the store's time `nowUs`. Throws where it cannot be read. */
export function decode(command: Command, answered: unknown, nowUs: number): Reply {
  if (command.type === "inspect") return view(answered, nowUs);
  if (typeof answered !== "string" || !LETTERS[command.type].includes(answered.charAt(0))) {
    throw new Unreadable(`a reply to ${command.type}`);
  }
  const text = answered.slice(1);
  switch (answered[0]) {
    case "G": {
      const { span, ttlUs } = command as Acquire;
      const token = text === "" ? nowUs : whole(text);
      return { type: "granted", token, span, remainingUs: ttlUs };
    }
    case "g": {
      const [token, span, remainingUs] = text.split(" ");
      return {
        type: "granted",
        token: whole(token),
        span: whole(span),
        remainingUs: whole(remainingUs),
      };
    }
    case "R":
    case "r":
    case "S":
    case "s":
      return {
        type: "released",
        held: answered[0] === "R" || answered[0] === "S",
        offerUs: text === "" ? 0 : whole(text),
        more: answered[0] === "S" || answered[0] === "s",
      };
    case "N": {
      const [remainingUs, waiting, token, span] = text.split(" ");
      return {
        type: "renewed",
        remainingUs: whole(remainingUs),
        waiting: waiting === "1",
        token: whole(token),
        span: whole(span),
      };
    }
    case "Q": {
      const [[ahead = ""], rest] = words(text, 1);
      return {
        type: "queued",
        ahead: ahead === "-" ? null : whole(ahead),
        ...blockage(rest, nowUs),
      };
    }
    case "B":
      return { type: "busy", ...blockage(text.slice(1), nowUs) };
    case "M":
      return { type: "marked", ...mark(text) };
    case "L":
      return { type: "stale", reason: "late" };
    case "E":
      return { type: "stale", reason: "ended" };
    case "U":
      return { type: "refused", reason: REFUSED[oneOf(REFUSED_LETTERS, text)] };
    case "O":
      return { type: "gone", reason: GONE[oneOf(GONE_LETTERS, text[0])], detail: text.slice(1) };
    case "T":
    case "t":
      return { ...touched(text, nowUs), more: answered[0] === "t" };
    case "V":
      return { type: "revoked", done: oneOf(["0", "1"], text) === "1" };
    default:
      throw new Unreadable("a reply");
  }
}

const REFUSED = { t: "terms", s: "seen", l: "tokens" } as const;
const REFUSED_LETTERS = ["t", "s", "l"] as const;
const GONE = { m: "missing", r: "replaced", v: "revoked" } as const;
const GONE_LETTERS = ["m", "r", "v"] as const;

/** The push in a message to `client`. Throws where it cannot be read. */
export function decodePush(client: string, message: string): Push {
  const text = message.slice(1);
  if (message[0] === "g") {
    const [words5, key] = words(text, 5);
    return { type: "granted", client, key, grant: pushedGrant(words5) };
  }
  const kind = oneOf(["m", "v"], message[0]);
  const news: unknown = JSON.parse(text);
  if (!Array.isArray(news)) throw new Unreadable("a list");
  const [key, owner, token, detail] = news.map(textOf);
  const about = { client, key: textOf(key), owner: textOf(owner), token: whole(token) };
  if (kind === "m") return { ...about, type: "marked", meta: textOf(detail) };
  return { ...about, type: "revoked", reason: textOf(detail) };
}

function pushedGrant([
  owner = "",
  token,
  span,
  grantedUs,
  expiryUs,
]: readonly string[]): PushedGrant {
  return {
    owner,
    token: whole(token),
    span: whole(span),
    grantedUs: whole(grantedUs),
    expiryUs: whole(expiryUs),
  };
}

function touched(text: string, nowUs: number): Omit<Touched, "more"> {
  const [[waiting = "", count = ""], afterCounts] = words(text, 2);
  const grants: PushedGrant[] = [];
  // The count may be anything, the text has an end.
  const most = Math.min(5 * whole(count), afterCounts.length + 1);
  const [fields, rest] = words(afterCounts, most);
  for (let at = 0; at < fields.length; at += 5) grants.push(pushedGrant(fields.slice(at, at + 5)));
  return { type: "touched", grants, waiting: whole(waiting), ...blockage(rest, nowUs) };
}

function view(answered: unknown, nowUs: number): View {
  if (!Array.isArray(answered)) throw new Unreadable("lists");
  const [left, holders, waiters] = answered;
  if (!Array.isArray(holders) || !Array.isArray(waiters)) throw new Unreadable("lists");
  return {
    type: "view",
    holders: holders.map((text) => holder(textOf(text), nowUs)),
    waiters: waiters.map((text) => waiter(textOf(text), nowUs)),
    mark: left === "" ? null : mark(textOf(left)),
  };
}

function blockage(text: string, nowUs: number): { holder: HolderEntry | null; dueUs: number } {
  if (text === "") return { holder: null, dueUs: 0 };
  const entry = holder(text, nowUs);
  return { holder: entry, dueUs: entry.remainingUs };
}

/** A field of a record that lua/records.lua declares. */
function field(text: string, [start, end]: readonly [number, number?]): string {
  return text.slice(start, end);
}

/** A holder in one of the forms in which the script keeps it. */
function holder(text: string, nowUs: number): HolderEntry {
  const form = oneOf(["f", "+", "h", "u"], text[0]);
  const record = form === "f" ? FRESH : form === "+" ? RAISED : FULL;
  const grantedUs = whole(field(text, FULL.granted));
  const { ttlUs, ...asked } = request(field(text, record.request));
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

function waiter(text: string, nowUs: number): WaiterEntry {
  const { mode, weight, limit, meta } = request(field(text, WAITER.request));
  return { mode, weight, limit, meta, waitedUs: nowUs - whole(field(text, WAITER.since)) };
}

function mark(text: string): MarkEntry {
  const [[token, remainingUs], meta] = words(text, 2);
  return { token: whole(token), meta, remainingUs: whole(remainingUs) };
}

/** The part of an acquire that the script keeps. */
function request(text: string): {
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
  const [, afterTimes] = words(field(text, REQUEST.words), 4);
  if (letter === "x") {
    return { ttlUs, mode, weight: 1, limit: NO_LIMIT, span: 1, meta: afterTimes };
  }
  const [[weight, limit, span], meta] = words(afterTimes, 3);
  return { ttlUs, mode, weight: whole(weight), limit: whole(limit), span: whole(span), meta };
}

/** The first words, and the text that follows them. */
function words(text: string, count: number): [readonly string[], string] {
  const found: string[] = [];
  let start = 0;
  for (let index = 0; index < count; index += 1) {
    const end = text.indexOf(" ", start);
    found.push(text.slice(start, end < 0 ? undefined : end));
    start = end < 0 ? text.length : end + 1;
  }
  return [found, text.slice(start)];
}
