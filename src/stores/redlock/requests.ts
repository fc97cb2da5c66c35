/**
 * The frequent requests as lua/lean.lua takes them: in few arguments, each of which costs both
 * sides more than to cut up another one does.
 */
import { createHash } from "node:crypto";
import type { Claim } from "../../store.js";
import { spanOf } from "./ballot.js";
import type { RedlockGrant } from "./redlock-grant.js";
import type { Surroundings } from "./surroundings.js";

const KEPT_MS = 86_460_000;

export function voteArgs(
  claim: Pick<Claim, "owner" | "ttlMs" | "span">,
  ballot: number,
  channel: string,
  metaText: string,
  setId: string,
  waiting: { readonly id: string; readonly since: string } | null,
): string[] {
  const { owner, ttlMs } = claim;
  const length = `${owner.length}`.padStart(2, "0");
  const terms = `${keptUntilMs(ballot)}v${setId}${length}${Math.ceil(ttlMs)}`;
  const sinceMs = Math.floor(ballot / 1000);
  const span = spanText(claim);
  const record = `${ballot} H ${owner} ${ballot} ${span} ${sinceMs} ${channel} ${metaText}`;
  const args = ["vote", terms, record];
  if (waiting) args.push(waiting.id);
  if (waiting && Number(waiting.since) !== ballot) args.push(waiting.since);
  return args;
}

/** What a set of nodes goes by where it is only compared. */
export function setIdOf(set: string): string {
  return createHash("sha1").update(set).digest("hex").slice(0, 16);
}

/** Of two digits: the script knows where to cut. */
function spanText(claim: Pick<Claim, "span">): string {
  return `${spanOf(claim)}`.padStart(2, "0");
}

export function renewArgs(
  { claim, token }: Pick<RedlockGrant, "token"> & { claim: Pick<Claim, "owner" | "span"> },
  ttlMs: number,
  { setId, wakeUps }: { setId: string; wakeUps: Pick<Surroundings["wakeUps"], "channel"> },
): string[] {
  const ttl = `${Math.ceil(ttlMs)}`;
  return ["renew", setId, claim.owner, `${token}`, spanText(claim), ttl, wakeUps.channel];
}

export function resumeArgs(
  { claim, token }: Pick<RedlockGrant, "token"> & { claim: Pick<Claim, "owner" | "ttlMs"> },
  { setId, wakeUps }: { setId: string; wakeUps: Pick<Surroundings["wakeUps"], "channel"> },
): string[] {
  const ttl = `${Math.ceil(claim.ttlMs)}`;
  return ["resume", setId, claim.owner, `${token}`, ttl, wakeUps.channel];
}

/** Without a mark, and without anybody who goes on waiting: they would come behind. */
export function releaseArgs(owner: string, ballot: number, reserveMs: number): string[] {
  return ["release", owner, `${ballot} H `, `${ballot + 1}`, `${reserveMs}`];
}

/** A ballot is kept until its absence says as much: a day, and a little, after its own time. */
function keptUntilMs(ballot: number): string {
  return `${Math.ceil(ballot / 1_000) + KEPT_MS}`.padStart(13, "0");
}
