/** Why a request to ZooKeeper failed, and whether it may have taken effect. */
import { HoldfastError, StoreError } from "../../errors/index.js";
import { foreignData, Unreadable } from "../../events/foreign-data.js";

/**
 * Whether a failed request may have taken effect. `not_sent`: no byte of it left this process.
 * `refused`: the server answered that it did not do it. `unknown`: it may have been done, or may
 * still be.
 */
export type RequestOutcome = "not_sent" | "refused" | "unknown";

/** The errors that a server answers with, by their numbers. */
const SERVER_CODES = {
  [-1]: "system_error",
  [-2]: "runtime_inconsistency",
  [-3]: "data_inconsistency",
  [-4]: "server_lost_connection",
  [-5]: "marshalling_error",
  [-6]: "unimplemented",
  [-7]: "operation_timeout",
  [-8]: "bad_arguments",
  [-12]: "unknown_session",
  [-101]: "no_node",
  [-102]: "no_auth",
  [-103]: "bad_version",
  [-108]: "no_children_for_ephemerals",
  [-110]: "node_exists",
  [-111]: "not_empty",
  [-112]: "session_expired",
  [-114]: "invalid_acl",
  [-115]: "auth_failed",
  [-118]: "session_moved",
  [-119]: "read_only",
  [-120]: "ephemeral_on_local_session",
  [-122]: "request_timeout",
  [-124]: "sasl_required",
  [-125]: "quota_exceeded",
  [-127]: "throttled",
} as const;

/** Server errors after which the request may still take effect. */
const OPEN_ENDED = new Set<ErrorCode>([
  "system_error",
  "server_lost_connection",
  "operation_timeout",
  "request_timeout",
  "unknown_error",
]);

/** Explanations of the codes whose names are not clear. */
const TEXTS: { readonly [Code in ErrorCode]?: string } = {
  auth_failed: "the server refused a credential",
  sasl_required: "the server requires SASL, which this client does not have",
  read_only: "the server has no quorum",
};

/**
 * `session_expired`: the server has ended the session, or never knew it. `session_moved`: the
 * session continued on another connection. `read_only`: the server has no quorum. The codes of this
 * process: `connection_lost`, `silent` (no sign of life from the server in time), `unreadable` (an
 * answer that is no answer), `too_many_requests`, `too_large`, `closed` (by the caller),
 * `not_connected` (no server could be reached in time).
 */
export type ErrorCode =
  | (typeof SERVER_CODES)[keyof typeof SERVER_CODES]
  | "unknown_error"
  | "connection_lost"
  | "silent"
  | "unreadable"
  | "too_many_requests"
  | "too_large"
  | "closed"
  | "not_connected";

/** A request failed, or a connection ended. */
export class ZookeeperError extends Error {
  readonly code: ErrorCode;
  readonly outcome: RequestOutcome;

  constructor(code: ErrorCode, outcome: RequestOutcome, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "ZookeeperError";
    this.code = code;
    this.outcome = outcome;
  }

  /** The same failure, as one request of several sees it. */
  for(outcome: RequestOutcome): ZookeeperError {
    return new ZookeeperError(this.code, outcome, this.message, this.cause);
  }
}

/** The error of a server that answered with a number other than 0. */
export function serverError(number: number, path: string): ZookeeperError {
  const code = codeOf(number);
  const outcome = OPEN_ENDED.has(code) ? "unknown" : "refused";
  const words = TEXTS[code] ?? code.replaceAll("_", " ");
  const where = path === "" ? "" : `: ${path}`;
  return new ZookeeperError(code, outcome, `${words} (error ${number})${where}`);
}

function codeOf(number: number): ErrorCode {
  const codes: Readonly<Record<number, ErrorCode>> = SERVER_CODES;
  return codes[number] ?? "unknown_error";
}

/** Whether the request failed with one of these codes. */
export function hasCode(error: unknown, ...codes: readonly ErrorCode[]): error is ZookeeperError {
  return error instanceof ZookeeperError && codes.includes(error.code);
}

/** ZooKeeper refused the request, and will refuse it again; some with a remedy. */
const FINAL: Partial<Record<ErrorCode, string>> = {
  no_auth: "Does the user of the store have all permissions on this znode?",
  auth_failed: "Check the user and the password.",
  invalid_acl: "The acl creator needs a user and a password.",
  sasl_required: "The store speaks digest authentication only.",
  ephemeral_on_local_session: "Set localSessionsUpgradingEnabled=true on the servers.",
  no_children_for_ephemerals: "Another program has a znode at the place of the lock.",
  unimplemented: "Holdfast needs ZooKeeper 3.5 or later.",
  quota_exceeded: "Raise the quota of the znode, or remove znodes below it.",
  too_large: "",
  bad_arguments: "",
};

/** `servers`: where ZooKeeper is, for messages. */
export function zookeeperError(cause: unknown, servers: string): HoldfastError {
  if (cause instanceof HoldfastError) return cause;
  if (cause instanceof Unreadable) return foreignData("the reply to a call", cause);
  const where = `ZooKeeper at ${servers}`;
  const said = cause instanceof Error ? cause.message : String(cause);
  // The failure of a connection begins with the place of its server.
  const text = said.startsWith(`${servers}: `) ? said.slice(servers.length + 2) : said;
  if (!(cause instanceof ZookeeperError)) {
    return new StoreError(`${where}: ${text}`, { outcome: "unknown", cause });
  }
  const advice = FINAL[cause.code];
  const isFinal = advice !== undefined;
  return new StoreError(`${where}: ${text}${advice ? `. ${advice}` : "."}`, {
    outcome: cause.outcome === "unknown" ? "unknown" : "not_applied",
    retryable: !isFinal,
    cause,
  });
}

/** Whether the request may have been done, or may still be. */
export function isUnknown(error: unknown): boolean {
  return !(error instanceof ZookeeperError) || error.outcome === "unknown";
}

/** Null if the request failed because there is no such znode. */
export function nullIfAbsent(error: unknown): null {
  if (hasCode(error, "no_node")) return null;
  throw error;
}
