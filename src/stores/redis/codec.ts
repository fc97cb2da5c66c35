/**
 * Commands and replies as texts: one text for each command, and one for each reply (a view is a
 * list). Numbers are decimal digits, because Lua prints large numbers without their last digits.
 * Free text stands last, so that nothing in it has to be escaped.
 */
import { assert } from "../../assert.js";
import { oneOf, text as textOf, Unreadable, whole } from "../../foreign-data.js";
import { cutOff, MOST_TURNS } from "../../rules/bounds.js";
import { NO_LIMIT } from "../../rules/fits.js";
import type {
  Acquire,
  Command,
  HolderEntry,
  MarkEntry,
  Push,
  PushedGrant,
  Renew,
  Reply,
  Touched,
  View,
} from "../../rules/ledger-command.js";
import { hasSameTerms } from "../arbiter/same-terms.js";
import { readHolder, readWaiter, words } from "./records.js";

/**
 * The commands of a batch as the script reads them (lua/records.lua). They name a client by its
 * channel. An acquire or a renewal that differs from the last one only in its owner says no more
 * than that owner.
 */
export function encode(commands: readonly Command[], channelPrefix: string): string[] {
  let spelled: Acquire | Renew | undefined;
  return commands.map((command) => {
    if (spelled && hasSameTerms(command, spelled)) return `"${command.owner} `;
    if (command.type === "acquire" || (command.type === "renew" && !command.heir)) {
      spelled = command;
    }
    return encodeOne(command, channelPrefix);
  });
}

function encodeOne(command: Command, channelPrefix: string): string {
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
  const isPlain = mode === "exclusive" && weight === 1 && limit === NO_LIMIT;
  const letter = isPlain ? "x" : mode === "exclusive" ? "e" : "s";
  // The owner of an operation in a capital letter may wait.
  const operation = command.enqueue ? letter.toUpperCase() : letter;
  const detail = isPlain ? "" : `${count(weight)} ${count(limit)} `;
  const times = fromZero(command.notAfterUs) + fromZero(command.seenToken) + digits(ttlUs);
  const turns = `${span <= MOST_TURNS ? count(span) : 0}`.padStart(4, "0");
  const patience = `${carried(offerUs)} ${carried(touchUs)}`;
  const words = `${owner} ${channelPrefix}${client} ${patience} ${detail}`;
  return operation + times + turns + letter + words + meta;
}

const MOST = Number.MAX_SAFE_INTEGER;

/** Sixteen digits: the script compares times as texts. */
function digits(value: number): string {
  return `${carried(value)}`.padStart(16, "0");
}

/** For numbers that the script only compares, where a negative number means the same as 0. */
function fromZero(value: number): string {
  return digits(Math.max(0, Math.floor(value)));
}

/** A value that is no whole number from 0 is sent as the highest number, which is refused. */
function carried(value: number): number {
  return Number.isInteger(value) && value >= 0 && value <= MOST ? value : MOST;
}

/** A value that is no count is sent as 0, which is refused. */
function count(value: number): number {
  return Number.isSafeInteger(value) && value >= 1 ? value : 0;
}

/** The first letters of the replies to each command. A view is a list. */
const LETTERS: Record<Exclude<Command["type"], "inspect">, string> = {
  acquire: "GgQBMLEU",
  confirm: "NO",
  renew: "NnOLU",
  release: "RrSs",
  touch: "Tt",
  revoke: "V",
};

/**
 * The reply to a command, at the store's time `nowUs`. A grant that does not say its token has
 * `nextToken`. Throws if the reply cannot be read.
 */
export function decode(
  command: Command,
  answered: unknown,
  nowUs: number,
  nextToken: number = nowUs,
): Reply {
  if (command.type === "inspect") return view(answered, nowUs);
  if (typeof answered !== "string" || !LETTERS[command.type].includes(answered.charAt(0))) {
    throw new Unreadable(`a reply to ${command.type}`);
  }
  const text = answered.slice(1);
  switch (answered[0]) {
    case "G": {
      assert(command.type === "acquire", "only an acquire is answered by G");
      const { span, ttlUs } = command;
      const token = text === "" ? nextToken : whole(text);
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
    case "n": {
      assert(command.type === "renew", "only a renewal is answered by n");
      const [token, span] = [whole(text.slice(0, 16)), whole(text.slice(16))];
      return { type: "renewed", remainingUs: command.ttlUs, waiting: false, token, span };
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

/** The push in a message to `client`. Throws if the message cannot be read. */
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
  // A damaged count may be huge, so the length of the text limits it.
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
    holders: holders.map((text) => readHolder(textOf(text), nowUs)),
    waiters: waiters.map((text) => readWaiter(textOf(text), nowUs)),
    mark: left === "" ? null : mark(textOf(left)),
  };
}

function blockage(text: string, nowUs: number): { holder: HolderEntry | null; dueUs: number } {
  if (text === "") return { holder: null, dueUs: 0 };
  const entry = readHolder(text, nowUs);
  return { holder: entry, dueUs: entry.remainingUs };
}

function mark(text: string): MarkEntry {
  const [[token, remainingUs], meta] = words(text, 2);
  return { token: whole(token), meta, remainingUs: whole(remainingUs) };
}
