/** The meaning of the errors of Redis and its clients for a call, and advice for the user. */
import { type Outcome, StoreError } from "../../errors/index.js";
import { foreignData } from "../../events/foreign-data.js";
import { tlsAdvice } from "../tls-advice.js";
import { unreachable } from "../unreachable.js";
import type { Driver } from "./client.js";

interface Meaning {
  readonly pattern: RegExp;
  readonly outcome: Outcome;
  readonly retryable: boolean;
  readonly advice: string;
  /** A script that fails with this error has written nothing. */
  readonly isAtFirstWrite?: boolean;
  /** How the message begins; default: "Redis refused". */
  readonly lead?: string;
}

/**
 * The error comes from a running script, which may have written before. An error without this word
 * refused the call before it ran.
 */
const IN_SCRIPT = /user_script/;
/** The text that Redis before 7.0 puts before the error of a command in a script. */
const SCRIPT_PREFIX = /^(?:ERR Error running script .*)?@user_script: ?\d+: -?(.*)$/;

/** The first meaning whose pattern matches counts. */
const MEANINGS: readonly Meaning[] = [
  no(/^LOADING/, "Redis is still loading its data"),
  atFirstWrite(/^READONLY/, "this server is a replica now: the client must find the new master"),
  no(/^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN)/, "the Cluster is changing"),
  // A connection may have broken during one of the redirections, with the command under way.
  maybe(/^Too many Cluster redirections|non local key/, "the Cluster is changing"),
  no(/^BUSY/, "another script blocks Redis: SCRIPT KILL ends it"),
  atFirstWrite(/^OOM/, "Redis has reached maxmemory: raise it, or free some"),
  no(/^MASTERDOWN/, "this replica lost its master"),
  atFirstWrite(/^NOREPLICAS/, "Redis has fewer replicas than min-replicas-to-write asks for"),
  atFirstWrite(/^MISCONF/, "Redis refuses to write because it cannot save: see its log"),
  no(/enableOfflineQueue|client is offline/, "the client is not connected"),
  no(/ECONNREFUSED|ENOTFOUND|EAI_AGAIN/, "no Redis answers at this address"),
  never(/^(NOAUTH|WRONGPASS)/, "check the client's user name and password"),
  never(
    /NOPERM|can't (run this command|access at least)|^ERR ACL failure/,
    "the page of the store has the ACL line",
  ),
  never(/^WRONGTYPE/, "another program uses keys of this namespace: choose another one"),
  never(/client is closed/, "connect() the client first, and keep it open"),
  never(/^ERR INFO has no run_id/, "INFO must tell the run_id of the server"),
  never(/[Uu]nknown (Redis )?command|syntax error/, "Redis 6.2 or newer is needed"),
  {
    ...maybe(/^TimeoutError$/, "the client is not connected, or the server hangs"),
    lead: "No answer from Redis",
  },
  never(IN_SCRIPT, "the script failed"),
];

function no(pattern: RegExp, advice: string): Meaning {
  return { pattern, outcome: "not_applied", retryable: true, advice };
}

/** The server checks this before the first write of a script, and not again in that script. */
function atFirstWrite(pattern: RegExp, advice: string): Meaning {
  return { ...no(pattern, advice), isAtFirstWrite: true };
}

function maybe(pattern: RegExp, advice: string): Meaning {
  return { pattern, outcome: "unknown", retryable: true, advice };
}

function never(pattern: RegExp, advice: string): Meaning {
  return { pattern, outcome: "not_applied", retryable: false, advice };
}

/** No further attempt helps: the certificates stay the same. */
function insecure(words: string): Meaning | undefined {
  const advice = tlsAdvice(words);
  return advice === null
    ? undefined
    : { ...never(/./, advice), lead: "No secure connection to Redis" };
}

/** The word that the script puts before the place of foreign data. */
const FOREIGN = "FOREIGN ";

/**
 * The error of `store` for whatever a client threw. A failure of unknown kind may have taken
 * effect. Where a `register` is given, a wrong type means that the register is foreign data.
 */
export function storeError(cause: unknown, store: string, register?: string): StoreError {
  if (cause instanceof StoreError) return cause;
  const message = saidBy(cause).replace(/\.$/, "");
  if (message.startsWith(FOREIGN)) return foreignData(message.slice(FOREIGN.length));
  // A word of the prefix stays as the sign that a script failed.
  const words = message.replace(SCRIPT_PREFIX, "$1 user_script");
  if (register !== undefined && words.startsWith("WRONGTYPE")) {
    return foreignData(register, discreet(cause));
  }
  const meaning = MEANINGS.find(({ pattern }) => pattern.test(words)) ?? insecure(words);
  const { retryable = true, advice, isAtFirstWrite = false } = meaning ?? {};
  const { lead = "Redis refused" } = meaning ?? {};
  const mayHaveWritten = IN_SCRIPT.test(words) && !isAtFirstWrite;
  const outcome = mayHaveWritten ? "unknown" : (meaning?.outcome ?? "unknown");
  const text = advice ? `${lead}: ${advice} (${message}).` : `Redis failed: ${message}.`;
  return new StoreError(text, { outcome, retryable, cause: discreet(cause), store });
}

/** The same for a client of one server, which cannot follow the redirections of a Cluster. */
export function plainError(cause: unknown, store: string, register?: string): StoreError {
  if (!(cause instanceof Error) || !/^(MOVED|ASK) /.test(cause.message)) {
    return storeError(cause, store, register);
  }
  const text =
    `This server is part of a Cluster (${cause.message}), and the client is for one server: ` +
    "use a Cluster client (new Cluster of ioredis, createCluster of redis, or redis+cluster:).";
  const context = { outcome: "not_applied", retryable: false, store } as const;
  return new StoreError(text, { ...context, cause: discreet(cause) });
}

/**
 * The text of a failure. The message is empty where a command waited too long in node-redis, and
 * where a host has several addresses and none of them answers; there Node.js gives a code.
 */
export function saidBy(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const { message, code } = cause as NodeJS.ErrnoException;
  return message || code || cause.constructor.name;
}

/** Drops the command, which ioredis adds: its arguments name owners, and errors end up in logs. */
function discreet(cause: unknown): unknown {
  if (cause instanceof Error) Reflect.deleteProperty(cause, "command");
  return cause;
}

export function isNoScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("NOSCRIPT");
}

const looks = new WeakMap<Driver, Promise<Error | null>>();

/** Why no server of a client can be reached. Calls that fail together share one connection. */
export function whyUnreachable(driver: Driver): Promise<Error | null> {
  const under = looks.get(driver);
  if (under) return under;
  const look = unreachable(driver.servers()).finally(() => looks.delete(driver));
  looks.set(driver, look);
  return look;
}
