/**
 * How commands and replies travel: an operation and flat strings there, one string per command back
 * (lists only for views). Numbers are decimal strings both ways, because Lua's own formatting of
 * large numbers loses digits; free text stands last, so that nothing in it has to be escaped.
 */
import type { Mode } from "../../rules/fits.js";
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

/** What the script answers for one command. */
export type Answered = string | readonly [string, readonly string[], readonly string[]];

/**
 * A command as the script reads it: the letter of its operation, fixed fields, free text last. A
 * client goes by the name of its channel there.
 */
export function encode(command: Command, channelPrefix: string): string {
  switch (command.type) {
    case "acquire":
      return encodeAcquire(command, channelPrefix);
    case "confirm":
      return `c${command.owner}`;
    case "renew": {
      const { owner, ttlUs, notAfterUs, seenToken } = command;
      return `n${digits(notAfterUs)}${digits(seenToken)}${ttlUs} ${owner}`;
    }
    case "release": {
      const { owner, tombstoneUs, keep } = command;
      if (!keep && tombstoneUs <= 0) return `r${owner}`;
      const keepUs = keep ? Math.ceil(keep.ttlUs) : "";
      return `d${Math.max(0, tombstoneUs)} ${keepUs} ${owner} ${keep?.meta ?? ""}`;
    }
    case "touch":
      return `t${channelPrefix}${command.client}`;
    case "inspect":
      return "i";
    case "revoke":
      return `v${command.token} ${command.reason}`;
  }
}

function encodeAcquire(command: Acquire, channelPrefix: string): string {
  const { owner, client, mode, weight, limit, ttlUs, claimUs, span, touchUs, meta } = command;
  // `x` may take the lean paths; a capital letter may wait.
  const isLean = mode === "exclusive" && span === 1 && weight <= limit;
  const operation = isLean ? (command.enqueue ? "X" : "x") : command.enqueue ? "S" : "s";
  const window = digits(command.notAfterUs) + digits(command.seenToken);
  // The key must not go before its content has expired, so it gets what rounding may take.
  const lifeMs = Math.ceil(ttlUs / 1000) + 2;
  const place = mode === "exclusive" ? "x" : "s";
  const channel = channelPrefix + client;
  const request = `${owner} ${ttlUs} ${channel} ${place} ${weight} ${limit}`;
  return `${operation}${window}${lifeMs} ${request} ${claimUs} ${span} ${touchUs} ${meta}`;
}

const MOST = 10 ** 16 - 1;

/** Sixteen digits: the script compares times as strings. */
function digits(us: number): string {
  return `${Math.min(Math.max(us, 0), MOST)}`.padStart(16, "0");
}

/** The reply to a command, at the store's time `nowUs`. */
export function decode(command: Command, answered: Answered, nowUs: number): Reply {
  if (typeof answered !== "string") return view(answered);
  const text = answered.slice(1);
  switch (answered[0]) {
    case "G": {
      const { span, ttlUs } = command as Acquire;
      const token = text === "" ? nowUs : Number(text);
      return { type: "granted", token, span, remainingUs: ttlUs };
    }
    case "g": {
      const [token = 0, span = 0, remainingUs = 0] = text.split(" ").map(Number);
      return { type: "granted", token, span, remainingUs };
    }
    case "R":
    case "r":
      return { type: "released", held: answered[0] === "R", claimUs: Number(text) };
    case "N": {
      const [remainingUs = 0, waiting = 0, token = 0, span = 0] = text.split(" ").map(Number);
      return { type: "renewed", remainingUs, waiting: waiting === 1, token, span };
    }
    case "Q": {
      const [[ahead = ""], rest] = words(text, 1);
      return { type: "queued", ahead: ahead === "-" ? null : Number(ahead), ...blockage(rest) };
    }
    case "B":
      return { type: "busy", ...blockage(text.slice(1)) };
    case "M":
      return { type: "marked", ...mark(text) };
    case "L":
      return { type: "stale", reason: "late" };
    case "E":
      return { type: "stale", reason: "ended" };
    case "O":
      return { type: "gone", reason: GONE[text[0] as keyof typeof GONE], detail: text.slice(1) };
    case "T":
      return touched(text);
    case "V":
      return { type: "revoked", done: text === "1" };
    default:
      throw new Error(`The script answered ${JSON.stringify(answered)}.`);
  }
}

const GONE = { m: "missing", r: "replaced", v: "revoked" } as const;

/** The push in a message to `client`. */
export function decodePush(client: string, message: string): Push {
  const text = message.slice(1);
  if (message[0] === "g") {
    const [words5, key] = words(text, 5);
    return { type: "granted", client, key, grant: pushedGrant(words5) };
  }
  const [key, owner, token, detail] = JSON.parse(text) as [string, string, string, string];
  const news = { client, key, owner, token: Number(token) };
  if (message[0] === "m") return { ...news, type: "marked", meta: detail };
  return { ...news, type: "revoked", reason: detail };
}

function pushedGrant([owner = "", ...numbers]: readonly string[]): PushedGrant {
  const [token = 0, span = 0, grantedUs = 0, expiryUs = 0] = numbers.map(Number);
  return { owner, token, span, grantedUs, expiryUs };
}

function touched(text: string): Touched {
  const [[waiting = "", count = ""], afterCounts] = words(text, 2);
  const [fields, rest] = words(afterCounts, 5 * Number(count));
  const grants: PushedGrant[] = [];
  for (let at = 0; at < fields.length; at += 5) grants.push(pushedGrant(fields.slice(at, at + 5)));
  return { type: "touched", grants, waiting: Number(waiting), ...blockage(rest) };
}

function view([left, holders, waiters]: Exclude<Answered, string>): View {
  return {
    type: "view",
    holders: holders.map(holder),
    waiters: waiters.map(waiter),
    mark: left === "" ? null : mark(left),
  };
}

function blockage(text: string): { holder: HolderEntry | null; dueUs: number } {
  if (text === "") return { holder: null, dueUs: 0 };
  const entry = holder(text);
  return { holder: entry, dueUs: entry.remainingUs };
}

function holder(text: string): HolderEntry {
  const [[token, span, mode, weight, limit, heldUs, remainingUs], meta] = words(text, 7);
  return {
    token: Number(token),
    span: Number(span),
    ...request(mode, weight, limit),
    meta,
    heldUs: Number(heldUs),
    remainingUs: Number(remainingUs),
  };
}

function waiter(text: string): WaiterEntry {
  const [[mode, weight, limit, waitedUs], meta] = words(text, 4);
  return { ...request(mode, weight, limit), meta, waitedUs: Number(waitedUs) };
}

function mark(text: string): MarkEntry {
  const [[token, remainingUs], meta] = words(text, 2);
  return { token: Number(token), meta, remainingUs: Number(remainingUs) };
}

function request(
  mode: string | undefined,
  weight: string | undefined,
  limit: string | undefined,
): { mode: Mode; weight: number; limit: number } {
  const isExclusive = mode === "x";
  return {
    mode: isExclusive ? "exclusive" : "shared",
    weight: Number(weight),
    limit: Number(limit),
  };
}

/** The first words, and whatever follows them. */
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
