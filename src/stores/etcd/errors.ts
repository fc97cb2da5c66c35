import { StoreError } from "../../errors/index.js";
import { foreignData, Unreadable } from "../../events/foreign-data.js";
import { NotConnectedError } from "./wire/http2.js";

/** etcd refused the request before it changed anything, and will refuse it again. */
const FINAL =
  /database space exceeded|permission denied|user name is empty|authentication (failed|is not)/;
/** etcd refused the request before it changed anything. */
const REFUSED = /lease not found|too many (requests|operations)|duplicate key/;
/** etcd refused the request before it changed anything, because the token of the user is old. */
export const OLD_TOKEN: RegExp = /invalid auth token|revision of auth store is old/;

/** An OpenSSL error: names of its parts, then the text. */
const OPENSSL = /^[\dA-F]+:error:[\dA-F]+:[^:]*:[^:]*:([^:]*):.*$/s;

/** `hosts`: where etcd is. */
export function etcdError(cause: unknown, hosts: string): StoreError {
  if (cause instanceof Unreadable) return foreignData("the reply to a call", cause);
  const text = cause instanceof Error ? cause.message : String(cause);
  const isFinal = FINAL.test(text);
  const isRefused = isFinal || REFUSED.test(text) || OLD_TOKEN.test(text);
  const outcome = isRefused ? "not_applied" : "unknown";
  const why = cause instanceof NotConnectedError ? whyNotConnected(text) : text;
  return new StoreError(`etcd at ${hosts}: ${why}`, { outcome, retryable: !isFinal, cause });
}

function whyNotConnected(text: string): string {
  const error = text.replace(OPENSSL, "$1").trim();
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

/** The lease that the request needs has ended. */
export function isLeaseGone(error: unknown): boolean {
  return causeText(error).includes("lease not found");
}

/** The id of a lease is taken. */
export function isLeaseThere(error: unknown): boolean {
  return causeText(error).includes("lease already exists");
}

export function isOutOfSpace(error: unknown): boolean {
  return causeText(error).includes("database space exceeded");
}

function causeText(error: unknown): string {
  const cause = error instanceof StoreError ? error.cause : error;
  return cause instanceof Error ? cause.message : "";
}
