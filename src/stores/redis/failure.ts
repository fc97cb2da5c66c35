/** What the errors of Redis and its clients mean for a call, and what to do about them. */
import { type Outcome, StoreError } from "../../errors.js";

interface Meaning {
  readonly pattern: RegExp;
  readonly outcome: Outcome;
  readonly retryable: boolean;
  readonly advice: string;
}

/** The first that matches counts. What Redis refuses before it runs a script changed nothing. */
const MEANINGS: readonly Meaning[] = [
  no(/^LOADING/, "Redis is still loading its data"),
  no(/^READONLY/, "this server is a replica now: the client must find the new master"),
  no(/^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN|Too many Cluster redirections)/, "the Cluster is changing"),
  maybe(/non local key/, "the Cluster is changing"),
  no(/^BUSY/, "another script blocks Redis: SCRIPT KILL ends it"),
  no(/^OOM|OOM command not allowed/, "Redis has reached maxmemory: raise it, or free some"),
  no(/^MASTERDOWN/, "this replica lost its master"),
  no(/^NOREPLICAS/, "Redis has fewer replicas than min-replicas-to-write asks for"),
  no(/^MISCONF/, "Redis refuses to write because it cannot save: see its log"),
  no(/enableOfflineQueue|client is offline/, "the client is not connected"),
  no(/ECONNREFUSED|ENOTFOUND|EAI_AGAIN/, "no Redis answers at this address"),
  never(/^(NOAUTH|WRONGPASS)/, "check the client's user name and password"),
  never(/NOPERM|can't (run this command|access at least)/, "docs/stores/redis.md has the ACL line"),
  never(/^WRONGTYPE/, "another program uses keys of this namespace: choose another one"),
  never(/client is closed/, "connect() the client first, and keep it open"),
  never(/[Uu]nknown (Redis )?command|syntax error/, "Redis 6.2 or newer is needed"),
  { pattern: /user_script/, outcome: "unknown", retryable: false, advice: "the script failed" },
];

function no(pattern: RegExp, advice: string): Meaning {
  return { pattern, outcome: "not_applied", retryable: true, advice };
}

function maybe(pattern: RegExp, advice: string): Meaning {
  return { pattern, outcome: "unknown", retryable: true, advice };
}

function never(pattern: RegExp, advice: string): Meaning {
  return { pattern, outcome: "not_applied", retryable: false, advice };
}

/** The store's error for whatever a client threw; what is not known may have taken effect. */
export function storeError(cause: unknown): StoreError {
  if (cause instanceof StoreError) return cause;
  const said = cause instanceof Error ? cause.message : String(cause);
  const message = said.replace(/\.$/, "");
  const meaning = MEANINGS.find(({ pattern }) => pattern.test(message));
  const { outcome = "unknown", retryable = true, advice } = meaning ?? {};
  const text = advice ? `Redis refused: ${advice} (${message}).` : `Redis failed: ${message}.`;
  return new StoreError(text, { outcome, retryable, cause: discreet(cause), store: "redis" });
}

/** ioredis adds the command with its arguments: they name owners, and errors end up in logs. */
function discreet(cause: unknown): unknown {
  if (cause instanceof Error) Reflect.deleteProperty(cause, "command");
  return cause;
}

export function isNoScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("NOSCRIPT");
}
