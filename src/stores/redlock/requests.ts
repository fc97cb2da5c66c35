/**
 * The frequent requests as lua/lean.lua takes them: in few arguments, each of which costs both
 * sides more than to cut up another one does.
 */
import type { Claim } from "../../store.js";
import { spanOf } from "./ballot.js";

const KEPT_SECONDS = 86_460;

export function voteArgs(
  claim: Pick<Claim, "owner" | "ttlMs" | "span">,
  ballot: number,
  channel: string,
  metaText: string,
  set: string,
  waiting: { readonly member: string; readonly since: string } | null,
): string[] {
  const { owner, ttlMs } = claim;
  const terms = `${keptUntil(ballot)}${Math.ceil(ttlMs)}`;
  const sinceMs = Math.floor(ballot / 1000);
  const span = spanText(claim);
  const record = `${ballot} H ${owner} ${ballot} ${span} ${sinceMs} ${channel} ${metaText}`;
  const args = ["vote", owner, terms, record, set];
  if (waiting) args.push(waiting.member, waiting.since);
  return args;
}

/** Of two digits: the script knows where to cut. */
export function spanText(claim: Pick<Claim, "span">): string {
  return `${spanOf(claim)}`.padStart(2, "0");
}

/** Without a mark, and without anybody who goes on waiting: they would come behind. */
export function releaseArgs(owner: string, ballot: number, reserveMs: number): string[] {
  return ["release", owner, `${ballot} H `, `${ballot + 1}`, `${reserveMs}`];
}

/**
 * A node keeps a ballot until its absence says as much: a day, and a little, after its own time.
 * In seconds, of ten digits.
 */
function keptUntil(ballot: number): string {
  return `${Math.ceil(ballot / 1_000_000) + KEPT_SECONDS}`.padStart(10, "0");
}
