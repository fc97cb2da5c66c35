import { StoreError } from "../../errors.js";
import { foreignData, Unreadable } from "../../foreign-data.js";
import { NotConnectedError } from "./grpc-connection.js";

/** etcd refused the request, and will refuse it again. */
const FINAL =
  /database space exceeded|permission denied|user name is empty|authentication (failed|is not)/;
/** etcd refused the request before it changed anything. */
const REFUSED = /lease not found|too many (requests|operations)|duplicate key/;
/** etcd refused the request before it changed anything: its token is old. */
export const OLD_TOKEN: RegExp = /invalid auth token|revision of auth store is old/;

/** The words of the transport of `etcd3` when it has no connection. */
const NO_CONNECTION = /No connection established\. Last error: (.*?)\.? Resolution note:/s;
/** An OpenSSL error: names of its parts, then the text. */
const OPENSSL = /^[\dA-F]+:error:[\dA-F]+:[^:]*:[^:]*:([^:]*):.*$/s;

/** `hosts`: where etcd is; "" where that is not known, as for a client that was passed in. */
export function etcdError(cause: unknown, hosts: string): StoreError {
  if (cause instanceof Unreadable) return foreignData("the reply to a call", cause);
  const text = cause instanceof Error ? cause.message : String(cause);
  const isFinal = FINAL.test(text);
  const isRefused = isFinal || REFUSED.test(text) || OLD_TOKEN.test(text);
  const outcome = isRefused ? "not_applied" : "unknown";
  const where = hosts === "" ? "etcd" : `etcd at ${hosts}`;
  return new StoreError(`${where}: ${explain(cause, text)}`, {
    outcome,
    retryable: !isFinal,
    cause,
  });
}

function explain(cause: unknown, text: string): string {
  const found = reasonNotConnected(cause);
  if (found === undefined) return text.replace(/^\d+ [A-Z_]+: /, "");
  const error = found
    .replace(/^Error: /, "")
    // The transport adds the time.
    .replace(/ \(\d{4}-\d\d-\d\dT[^)]*\)$/, "")
    .replace(OPENSSL, "$1")
    .trim();
  if (error === "null") return "no connection.";
  return `no connection (${error}).${advice(error)}`;
}

/** A server that expects TLS ends a plain connection without a reason, and the reverse. */
function advice(error: string): string {
  if (error === "Failed to connect" || error === "Protocol error") {
    return " Does the server expect TLS? Then the URL begins with etcds:.";
  }
  if (error === "wrong version number" || error.includes("before secure TLS connection")) {
    return " Does the server expect no TLS? Then the URL begins with etcd:.";
  }
  return "";
}

/** The lease that the request needs is gone. */
export function isLeaseGone(error: unknown): boolean {
  return causeText(error).includes("lease not found");
}

export function isOutOfSpace(error: unknown): boolean {
  return causeText(error).includes("database space exceeded");
}

export function isNotConnected(error: unknown): boolean {
  return reasonNotConnected(error) !== undefined;
}

function reasonNotConnected(error: unknown): string | undefined {
  if (error instanceof NotConnectedError) return error.message;
  return NO_CONNECTION.exec(causeText(error))?.[1];
}

/** The client refuses to send, because calls before this one failed. */
export function isNotTried(error: unknown): boolean {
  return causeText(error).includes("circuit breaker is open");
}

/** The id of a lease is taken. */
export function isLeaseThere(error: unknown): boolean {
  return causeText(error).includes("lease already exists");
}

function causeText(error: unknown): string {
  const cause = error instanceof StoreError ? error.cause : error;
  return cause instanceof Error ? cause.message : "";
}
