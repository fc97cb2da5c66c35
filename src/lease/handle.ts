import type { Claim, Grant } from "../contract/store.js";
import { type InvalidOptionError, invalidValue } from "../errors/index.js";
import { oneOf, record, text as textOf, whole } from "../events/foreign-data.js";
import { nameProblem } from "../rules/name.js";

/**
 * The content of a handle: enough to continue the lease, and nothing about the process that made
 * it.
 */
export interface Handed {
  readonly claim: Claim;
  readonly token: bigint;
  readonly locator: string | null;
}

const PREFIX = "hf1.";
const RULE = "must be a handle as lease.handle gives it";

/** The handle is the secret that proves ownership: a process that has it can renew and release. */
export function encodeHandle({ claim, token, locator }: Grant): string {
  const { meta: _, ...rest } = claim;
  const text = JSON.stringify({ claim: rest, token: String(token), locator });
  return PREFIX + Buffer.from(text).toString("base64url");
}

export function decodeHandle(handle: unknown): Handed {
  if (typeof handle !== "string" || !handle.startsWith(PREFIX)) throw malformed();
  try {
    const text = Buffer.from(handle.slice(PREFIX.length), "base64url").toString();
    const { claim, token, locator } = record(JSON.parse(text));
    return {
      claim: readClaim(record(claim)),
      token: BigInt(digits(token)),
      locator: locator === null ? null : textOf(locator),
    };
  } catch {
    throw malformed();
  }
}

/** A handle may have come by any way: each value goes into commands only when it can be one. */
function readClaim(claim: Readonly<Record<string, unknown>>): Claim {
  const { name, owner, minUsefulMs, ttlMs, storeTimeoutMs } = claim;
  if (nameProblem(name) !== null) throw malformed();
  if (!/^[\w-]+$/.test(textOf(owner))) throw malformed();
  return {
    space: oneOf(["lock", "election", "once"], claim.space),
    name: textOf(name),
    owner: textOf(owner),
    mode: oneOf(["exclusive", "shared"], claim.mode),
    weight: whole(claim.weight),
    limit: whole(claim.limit),
    span: whole(claim.span),
    ttlMs: duration(ttlMs),
    // JSON has no infinity.
    storeTimeoutMs: storeTimeoutMs === null ? Number.POSITIVE_INFINITY : duration(storeTimeoutMs),
    ...(minUsefulMs === undefined ? {} : { minUsefulMs: duration(minUsefulMs) }),
    transferable: oneOf([true, false], claim.transferable),
    ownSession: oneOf([true, false], claim.ownSession),
    meta: {},
  };
}

function duration(value: unknown): number {
  if (typeof value !== "number" || !(value >= 0)) throw malformed();
  return value;
}

function digits(value: unknown): string {
  if (!/^\d+$/.test(textOf(value))) throw malformed();
  return textOf(value);
}

/** The value stays out of the message: it is a secret. */
function malformed(): InvalidOptionError {
  return invalidValue("handle", "(hidden)", RULE);
}
