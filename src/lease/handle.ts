import { InvalidOptionError } from "../errors.js";
import type { Claim, Grant } from "../store.js";

/** What a handle carries: enough to continue the lease, and nothing about who made it. */
export interface Handed {
  readonly claim: Claim;
  readonly token: bigint;
  readonly session: string | null;
}

const PREFIX = "hf1.";
const RULE = "must be a handle as lease.handle gives it";

/** The handle is the secret that proves ownership: whoever has it can renew and release. */
export function encodeHandle({ claim, token, session }: Grant): string {
  const { meta: _, ...rest } = claim;
  const text = JSON.stringify({ claim: rest, token: String(token), session });
  return PREFIX + Buffer.from(text).toString("base64url");
}

export function decodeHandle(handle: unknown): Handed {
  if (typeof handle !== "string" || !handle.startsWith(PREFIX)) throw malformed();
  try {
    const text = Buffer.from(handle.slice(PREFIX.length), "base64url").toString();
    const { claim, token, session } = JSON.parse(text);
    if (typeof claim.name !== "string" || typeof claim.owner !== "string") throw malformed();
    return { claim: { ...claim, meta: {} }, token: BigInt(token), session };
  } catch {
    throw malformed();
  }
}

/** The value stays out of the message: it is a secret. */
function malformed(): InvalidOptionError {
  return new InvalidOptionError("handle", "(hidden)", RULE);
}
