/**
 * Commands as the words of `holdfast.execute_1` (sql/execute.sql), and its answer. Numbers are
 * decimal digits. A number that no client should send becomes one that the ledger refuses too, so
 * that it harms its own command only.
 */
import { foreignData, list, oneOf, text, Unreadable, whole } from "../../foreign-data.js";
import { cutOff } from "../../rules/bounds.js";
import type { Acquire, Command, Push, Renew, Reply, View } from "../../rules/ledger-command.js";
import type { Execution } from "../arbiter/arbiter.js";
import { hasSameTerms } from "../arbiter/same-terms.js";
import { readBlockage, readFlag, readGrant, readMark, readText, readView } from "./records.js";
import { arrayLiteral } from "./stored-text.js";

/** The channel that a client listens on. */
export function channelOf(client: string): string {
  return `holdfast:${client}`;
}

/** Commands with one operation and one set of terms. */
interface Run {
  readonly head: Acquire | Renew | null;
  readonly terms: readonly string[];
  readonly keys: Set<string>;
  readonly subjects: string[];
}

/**
 * The second argument of `holdfast.execute_1`, as the literal of an array. `isSynchronous` says
 * that no acknowledged commit is lost in a failover.
 */
export function encode(commands: readonly Command[], isSynchronous = false): string {
  const runs: Run[] = [];
  for (const command of commands) {
    const last = runs.at(-1);
    if (last && !last.keys.has(command.key) && continues(last, command)) {
      last.keys.add(command.key);
      last.subjects.push(subjectOf(command));
      continue;
    }
    const head = command.type === "acquire" || command.type === "renew" ? command : null;
    const keys = new Set([command.key]);
    runs.push({ head, terms: termsOf(command), keys, subjects: [subjectOf(command)] });
  }
  const flags = (commands.some(needsRow) ? "+" : "") + (isSynchronous ? "s" : "");
  const words = [flags, `${commands.length}`, ...commands.map(({ key }) => key)];
  for (const { terms, subjects } of runs) {
    const [operation = "", ...rest] = terms;
    words.push(operation, `${subjects.length}`, ...rest, ...subjects);
  }
  return arrayLiteral(words);
}

function continues({ head, terms }: Run, command: Command): boolean {
  if (head) return hasSameTerms(command, head);
  if (command.type === "acquire" || command.type === "renew") return false;
  const other = termsOf(command);
  return other.every((term, at) => term === terms[at]);
}

/** A name without a row has no state: only these commands can give it some. */
function needsRow(command: Command): boolean {
  if (command.type === "release") return command.tombstoneUs > 0;
  return command.type === "acquire" || command.type === "renew";
}

/** The operation and the terms of a command, without its key and its subject. */
function termsOf(command: Command): string[] {
  switch (command.type) {
    case "acquire":
      return [
        "a",
        command.client,
        command.mode === "exclusive" ? "x" : "s",
        count(command.weight),
        count(command.limit),
        carried(command.ttlUs),
        carried(command.offerUs),
        carried(command.touchUs),
        count(command.span),
        command.enqueue ? "1" : "0",
        fromZero(command.notAfterUs),
        fromZero(command.seenToken),
        command.meta,
      ];
    case "renew": {
      const { ttlUs, notAfterUs, seenToken, heir } = command;
      const terms = [carried(ttlUs), fromZero(notAfterUs), fromZero(seenToken)];
      return heir === undefined ? ["n", ...terms] : ["m", ...terms, heir];
    }
    case "release": {
      const { tombstoneUs, keep } = command;
      const untilUs = tombstoneUs > 0 ? fromZero(tombstoneUs) : "0";
      return ["r", untilUs, keep ? `${cutOff(keep.ttlUs)}` : "", keep?.meta ?? ""];
    }
    case "revoke":
      return ["v", command.reason];
    default:
      return [command.type.charAt(0)];
  }
}

/** The word of a command that differs within a run. */
function subjectOf(command: Command): string {
  switch (command.type) {
    case "touch":
      return command.client;
    case "inspect":
      return "";
    case "revoke":
      return count(command.token);
    default:
      return command.owner;
  }
}

const MOST = Number.MAX_SAFE_INTEGER;

/** For numbers that are only compared, where a negative number means the same as 0. */
function fromZero(value: number): string {
  return carried(Math.max(0, Math.floor(value)));
}

/** A value that is no whole number from 0 is sent as the highest number, which is refused. */
function carried(value: number): string {
  return `${Number.isInteger(value) && value >= 0 && value <= MOST ? value : MOST}`;
}

/** A value that is no count is sent as 0, which is refused. */
function count(value: number): string {
  return `${Number.isSafeInteger(value) && value >= 1 ? value : 0}`;
}

/**
 * The answer of `holdfast.execute_1`. A reply that cannot be read is an error of its own command.
 * Throws if the whole answer cannot be read.
 */
export function decode(commands: readonly Command[], answer: unknown): Execution {
  const [head = "", ...lines] = text(answer).split("\n");
  const [time, node = ""] = head.split(" ");
  const nowUs = whole(time);
  if (lines.length !== Math.max(1, commands.length)) throw new Unreadable("a reply per command");
  const replies = commands.map((command, at) => {
    try {
      return decodeReply(command, lines[at] ?? "");
    } catch (error) {
      return foreignData(`the row of ${JSON.stringify(command.key)} in holdfast.name`, error);
    }
  });
  return { nowUs, node, replies };
}

/** The first letters of the replies to each command. */
const LETTERS: Record<Command["type"], string> = {
  acquire: "GgQBMLEU",
  confirm: "NO",
  renew: "NOLU",
  release: "R",
  touch: "T",
  inspect: "I",
  revoke: "V",
};

function decodeReply(command: Command, line: string): Reply {
  const letter = line.charAt(0);
  if (letter === "!") throw new Unreadable(`other data (${JSON.parse(line.slice(1))})`);
  if (letter === "" || !LETTERS[command.type].includes(letter)) {
    throw new Unreadable(`a reply to ${command.type}`);
  }
  if (letter === "G" && command.type === "acquire") {
    const { span, ttlUs } = command;
    return { type: "granted", token: whole(line.slice(1)), span, remainingUs: ttlUs };
  }
  const fields = line.length === 1 ? [] : list(JSON.parse(line.slice(1)));
  const [first, second, third, fourth] = fields;
  switch (letter) {
    case "g":
      return {
        type: "granted",
        token: whole(first),
        span: whole(second),
        remainingUs: whole(third),
      };
    case "R":
      if (fields.length === 0) return { type: "released", held: true, offerUs: 0, more: false };
      return {
        type: "released",
        held: readFlag(first),
        offerUs: whole(second),
        more: readFlag(third),
      };
    case "N":
      return {
        type: "renewed",
        remainingUs: whole(first),
        waiting: readFlag(second),
        token: whole(third),
        span: whole(fourth),
      };
    case "Q":
      return {
        type: "queued",
        ahead: first === null ? null : whole(first),
        ...readBlockage(second),
      };
    case "B":
      return { type: "busy", ...readBlockage(first) };
    case "M":
      return { type: "marked", ...readMark(fields) };
    case "L":
      return { type: "stale", reason: "late" };
    case "E":
      return { type: "stale", reason: "ended" };
    case "U":
      return { type: "refused", reason: REFUSED[oneOf(["t", "s", "l"], first)] };
    case "O":
      return {
        type: "gone",
        reason: GONE[oneOf(["m", "r", "v"], first)],
        detail: readText(second),
      };
    case "T":
      return {
        type: "touched",
        waiting: whole(first),
        more: readFlag(second),
        grants: list(third).map((grant) => readGrant(list(grant))),
        ...readBlockage(fourth),
      };
    case "I":
      return readView(fields);
    default:
      return { type: "revoked", done: readFlag(first) };
  }
}

const REFUSED = { t: "terms", s: "seen", l: "tokens" } as const;
const GONE = { m: "missing", r: "replaced", v: "revoked" } as const;

/**
 * The push in a message to `client`; null where it was too long to send, so that the client has to
 * ask. Throws if the message cannot be read.
 */
export function decodePush(client: string, payload: string): Push | null {
  if (payload === "?") return null;
  const [kind, storedKey, ...rest] = list(JSON.parse(payload));
  const about = { client, key: readText(storedKey) };
  if (kind === "g") return { ...about, type: "granted", grant: readGrant(rest) };
  const [owner, token, detail] = rest;
  const ended = { ...about, owner: readText(owner), token: whole(token) };
  return oneOf(["m", "v"], kind) === "m"
    ? { ...ended, type: "marked", meta: readText(detail) }
    : { ...ended, type: "revoked", reason: readText(detail) };
}

/** A page of names in use. */
export interface Page {
  readonly names: readonly { readonly key: string; readonly view: View }[];
  /** The third argument of the next call, in the form of the database; null after the last page. */
  readonly after: string | null;
}

/** The answer of `holdfast.list_1`. `onForeign` is told of names that cannot be read. */
export function decodePage(
  answer: unknown,
  onForeign: (key: string, error: unknown) => void,
): Page {
  const [, after = "null", ...lines] = text(answer).split("\n");
  const names: { key: string; view: View }[] = [];
  for (const line of lines) {
    const [storedKey, fields] = list(JSON.parse(line));
    const key = readText(storedKey);
    try {
      names.push({ key, view: readView(list(fields)) });
    } catch (error) {
      onForeign(key, error);
    }
  }
  const next: unknown = JSON.parse(after);
  return { names, after: next === null ? null : text(next) };
}
