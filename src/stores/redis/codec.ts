/**
 * Commands and replies as texts: one text for each command, and one for each reply (a view is a
 * list). Numbers are decimal digits, because Lua prints large numbers without their last digits.
 * Free text stands last, so that nothing in it has to be escaped. The scripts in lua/ say the form
 * of each command and of each reply.
 */
import { assert } from "../../errors/assert.js";
import { oneOf, text as textOf, Unreadable, whole } from "../../events/foreign-data.js";
import { areTermsValid, cutOff, isPatienceValid } from "../../rules/bounds.js";
import { NO_LIMIT } from "../../rules/fits.js";
import {
  type Acquire,
  type Command,
  type HeartbeatReply,
  type HolderEntry,
  hasSameTerms,
  type MarkEntry,
  type Push,
  type PushedGrant,
  type Renew,
  type Reply,
  type View,
} from "../../rules/ledger-command.js";
import { readHolder, readWaiter, words } from "./records.js";
import type { Verb } from "./script.generated.js";

/** Commands of one verb, with their places in the batch that they come from. */
export interface VerbCall {
  readonly verb: Verb;
  readonly commands: Command[];
  readonly places: number[];
}

const VERBS: Record<Command["type"], Verb> = {
  acquire: "acquire",
  confirm: "renew",
  renew: "renew",
  release: "release",
  heartbeat: "heartbeat",
  inspect: "inspect",
  revoke: "revoke",
};

export function verbOf({ type }: Command): Verb {
  return VERBS[type];
}

/** The calls of a batch. Only commands on one name keep their order. */
export function callsOf(commands: readonly Command[]): readonly VerbCall[] {
  const calls: VerbCall[] = [];
  /** The last call that has the name. */
  const lastOf = new Map<string, number>();
  for (const [place, command] of commands.entries()) {
    const verb = verbOf(command);
    const last = lastOf.get(command.key) ?? 0;
    let at = calls.findLastIndex((call) => call.verb === verb);
    if (at < last || at < 0) at = calls.push({ verb, commands: [], places: [] }) - 1;
    calls[at]?.commands.push(command);
    calls[at]?.places.push(place);
    lastOf.set(command.key, at);
  }
  return calls;
}

/** Instead of the ttl of a renewal: a confirm. */
const CONFIRM = "-".repeat(16);
const NO_TIMES = "0".repeat(32);

/** Writes commands. It keeps the texts that the next command probably has, too. */
export class Encoder {
  readonly #channelPrefix: string;
  #notAfterUs = 0;
  #notAfter = digits(0);
  #seenToken = 0;
  #seen = digits(0);
  #terms: Acquire | undefined;
  #how = "";
  #head = "";
  #tail = "";

  /** Commands name a client by its channel. */
  constructor(channelPrefix: string) {
    this.#channelPrefix = channelPrefix;
  }

  /**
   * The commands of one call. An acquire or a renewal that differs from the last one only in its
   * owner says no more than that owner.
   */
  encode(commands: readonly Command[]): string[] {
    let spelled: Acquire | Renew | undefined;
    return commands.map((command) => {
      if (spelled && hasSameTerms(command, spelled)) return `"${command.owner} `;
      spelled = undefined;
      if (command.type === "acquire" || (command.type === "renew" && !command.resumedBy)) {
        spelled = command;
      }
      return this.encodeOne(command);
    });
  }

  encodeOne(command: Command): string {
    switch (command.type) {
      case "acquire": {
        if (!this.#terms || !hasSameRequest(command, this.#terms)) this.#learn(command);
        return this.#how + this.#times(command) + this.#head + command.owner + this.#tail;
      }
      case "confirm":
        return `${NO_TIMES}${CONFIRM}${command.owner} `;
      case "renew": {
        const { owner, ttlUs, resumedBy } = command;
        const channel = resumedBy === undefined ? "" : this.#channelPrefix + resumedBy;
        return `${this.#times(command)}${digits(ttlUs)}${owner} ${channel}`;
      }
      case "release": {
        const { owner, tombstoneUs, keep } = command;
        if (!keep && !(tombstoneUs > 0)) return `${owner} `;
        const untilUs = tombstoneUs > 0 ? fromZero(tombstoneUs) : 0;
        const keepUs = keep ? cutOff(keep.ttlUs) : "";
        return ` ${untilUs} ${keepUs} ${owner} ${keep?.meta ?? ""}`;
      }
      case "heartbeat":
        return this.#channelPrefix + command.client;
      case "inspect":
        return "";
      case "revoke":
        return `${count(command.token)} ${command.reason}`;
    }
  }

  #times({ notAfterUs, seenToken }: Acquire | Renew): string {
    if (notAfterUs !== this.#notAfterUs) {
      this.#notAfterUs = notAfterUs;
      this.#notAfter = fromZero(notAfterUs);
    }
    if (seenToken !== this.#seenToken) {
      this.#seenToken = seenToken;
      this.#seen = fromZero(seenToken);
    }
    return this.#notAfter + this.#seen;
  }

  /** Writes all that requests with the same terms have in common. */
  #learn(command: Acquire): void {
    const { client, mode, weight, limit, ttlUs, offerUs, span, heartbeatUs, meta } = command;
    const isPlain = mode === "exclusive" && weight === 1 && limit === NO_LIMIT;
    const letter = isPlain ? "x" : mode === "exclusive" ? "e" : "s";
    const waits = isPatienceValid(command) ? letter.toUpperCase() : "p";
    this.#terms = command;
    this.#how = !areTermsValid(command) ? "u" : command.enqueue ? waits : letter;
    const turns = `${span <= 9_999 ? count(span) : 0}`.padStart(4, "0");
    this.#head = digits(ttlUs) + turns + digits(offerUs) + digits(heartbeatUs) + letter;
    const detail = isPlain ? "" : `${count(weight)} ${count(limit)} `;
    this.#tail = ` ${this.#channelPrefix}${client} ${detail}${meta}`;
  }
}

function hasSameRequest(one: Acquire, other: Acquire): boolean {
  return (
    one.meta === other.meta &&
    one.ttlUs === other.ttlUs &&
    one.span === other.span &&
    one.enqueue === other.enqueue &&
    one.mode === other.mode &&
    one.weight === other.weight &&
    one.limit === other.limit &&
    one.offerUs === other.offerUs &&
    one.heartbeatUs === other.heartbeatUs &&
    one.client === other.client
  );
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
  confirm: "nO",
  renew: "NnOLU",
  release: "RrSs",
  heartbeat: "Tt",
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
    case "n": {
      const [remainingUs, waiting, token, span] = text.split(" ");
      return {
        type: "renewed",
        remainingUs: whole(remainingUs),
        waiting: waiting === "1",
        token: whole(token),
        span: whole(span),
      };
    }
    case "N": {
      assert(command.type === "renew", "only a renewal is answered by N");
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
      return { ...heartbeatReply(text, nowUs), more: answered[0] === "t" };
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

function pushedGrant([owner = "", token, span, granted, offer]: readonly string[]): PushedGrant {
  const grantedUs = whole(granted);
  const expiryUs = whole(grantedUs + whole(offer));
  return { owner, token: whole(token), span: whole(span), grantedUs, expiryUs };
}

function heartbeatReply(text: string, nowUs: number): Omit<HeartbeatReply, "more"> {
  const [[waiting = "", count = ""], afterCounts] = words(text, 2);
  const grants: PushedGrant[] = [];
  // A damaged count may be huge, so the length of the text limits it.
  const most = Math.min(5 * whole(count), afterCounts.length + 1);
  const [fields, rest] = words(afterCounts, most);
  for (let at = 0; at < fields.length; at += 5) grants.push(pushedGrant(fields.slice(at, at + 5)));
  return { type: "heartbeat", grants, waiting: whole(waiting), ...blockage(rest, nowUs) };
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
