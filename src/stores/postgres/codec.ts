/**
 * Writes commands as the arguments of `holdfast.execute_3` (sql/execute.sql), and reads its answer.
 * A number that no client should send is replaced by one that the ledger refuses, so that only its
 * own command fails.
 */
import type { StoreError } from "../../errors/index.js";
import { foreignData, list, oneOf, text, Unreadable, whole } from "../../events/foreign-data.js";
import type { Execution } from "../../families/ledger/arbiter.js";
import { cutOff } from "../../rules/bounds.js";
import {
  type Command,
  hasSameTerms,
  type Push,
  type Reply,
  type View,
} from "../../rules/ledger-command.js";
import type { Statement } from "./client.js";
import { readBlockage, readFlag, readGrant, readMark, readText, readView } from "./records.js";
import { arrayLiteral, recordLiteral, toStored } from "./stored-text.js";

/** The channel that a client listens on. */
export function channelOf(client: string): string {
  return `holdfast:${client}`;
}

/** Commands that differ in their names and subjects only: one command of the database. */
interface Run {
  readonly head: Command;
  readonly terms: Terms;
  readonly keys: Set<string>;
}

/** The fields of `holdfast.command_3` (sql/tables.sql), in their order. */
const FIELDS = [
  ...["ttl", "not_after", "seen", "client", "is_exclusive", "weight", "weight_limit", "span"],
  ...["offer", "heartbeat", "may_wait", "meta", "resumed_by", "tombstone", "reason"],
] as const;
type Terms = Readonly<Record<string, string>>;

/** `isSynchronous` says that no acknowledged commit is lost in a failover. */
export function executeStatement(
  namespace: string,
  commands: readonly Command[],
  isSynchronous = false,
): Statement & { readonly values: readonly string[] } {
  const runs: Run[] = [];
  for (const command of commands) {
    const last = runs.at(-1);
    if (last && !last.keys.has(command.key) && continues(last, command)) {
      last.keys.add(command.key);
    } else {
      runs.push({ head: command, terms: termsOf(command), keys: new Set([command.key]) });
    }
  }
  const records = runs.map(({ head, terms, keys }) =>
    recordLiteral([head.type, `${keys.size}`, ...FIELDS.map((field) => terms[field] ?? null)]),
  );
  const names = commands.map(({ key }) => key);
  const literals = [records, names, commands.map(subjectOf)].map(arrayLiteral);
  return { text: EXECUTE, values: [toStored(namespace), `${isSynchronous}`, ...literals] };
}

const EXECUTE = `select holdfast.execute_3($1::pg_catalog.text, $2::pg_catalog.bool,
  $3::holdfast.command_3[], $4::pg_catalog.text[], $5::pg_catalog.text[])`;

function continues({ head, terms }: Run, command: Command): boolean {
  if (command.type !== head.type) return false;
  if (head.type === "acquire" || head.type === "renew") return hasSameTerms(command, head);
  const other = termsOf(command);
  return FIELDS.every((field) => other[field] === terms[field]);
}

/** The terms of a command; without its key and its subject. */
function termsOf(command: Command): Terms {
  switch (command.type) {
    case "acquire":
      return {
        ttl: carried(command.ttlUs),
        not_after: fromZero(command.notAfterUs),
        seen: fromZero(command.seenToken),
        client: command.client,
        is_exclusive: `${command.mode === "exclusive"}`,
        weight: count(command.weight),
        weight_limit: count(command.limit),
        span: count(command.span),
        offer: carried(command.offerUs),
        heartbeat: carried(command.heartbeatUs),
        may_wait: `${command.enqueue}`,
        meta: command.meta,
      };
    case "renew": {
      const { ttlUs, notAfterUs, seenToken, resumedBy } = command;
      return {
        ttl: carried(ttlUs),
        not_after: fromZero(notAfterUs),
        seen: fromZero(seenToken),
        ...(resumedBy !== undefined && { resumed_by: resumedBy }),
      };
    }
    case "release": {
      const { tombstoneUs, keep } = command;
      return {
        tombstone: tombstoneUs > 0 ? fromZero(tombstoneUs) : "0",
        ...(keep && { ttl: `${cutOff(keep.ttlUs)}`, meta: keep.meta }),
      };
    }
    case "revoke":
      return { reason: command.reason };
    default:
      return {};
  }
}

/** What differs within a run, besides the name. */
function subjectOf(command: Command): string {
  switch (command.type) {
    case "heartbeat":
      return command.client;
    case "inspect":
      return "";
    case "revoke":
      return count(command.token);
    default:
      return command.owner;
  }
}

const MAX = Number.MAX_SAFE_INTEGER;

/** For numbers that are only compared, so that a negative number means the same as 0. */
function fromZero(value: number): string {
  return carried(Math.max(0, Math.floor(value)));
}

/** A value that is no whole number from 0 is sent as the highest number, which is refused. */
function carried(value: number): string {
  return `${Number.isInteger(value) && value >= 0 && value <= MAX ? value : MAX}`;
}

/** A value that is no count is sent as 0, which is refused. */
function count(value: number): string {
  return `${Number.isSafeInteger(value) && value >= 1 ? value : 0}`;
}

/**
 * The answer of `holdfast.execute_3`. A reply that cannot be read is an error of its own command.
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
      return damagedRow(command.key, error);
    }
  });
  return { nowUs, node, replies };
}

/** The error of a command, or of a page, that met a row which cannot be read. */
export function damagedRow(key: string, error: unknown): StoreError {
  return foreignData(rowOf(key), error);
}

/** Where the state of a name is, for errors. */
export function rowOf(key: string): string {
  return `the row of ${JSON.stringify(key)} in holdfast.name`;
}

/** The first letters of the replies to each command. */
const LETTERS: Record<Command["type"], string> = {
  acquire: "GgQBMLEU",
  confirm: "NO",
  renew: "NOLU",
  release: "R",
  heartbeat: "T",
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
        type: "heartbeat",
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
 * Reads the push in a notification to `client`. Returns null if the push was too long to send, so
 * that the client has to ask. Throws if the message cannot be read.
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

/** The answer of `holdfast.list_3`. `onForeign` is told of names that cannot be read. */
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
