/** Renewals of grants at all nodes, and the resumption of one that another process made. */
import type { Claim, GoneEvent, Renewal } from "../../store.js";
import { isHopeless } from "./answers.js";
import { deadlineOf, judgeRenewal, type RenewalJudgement } from "./ballot.js";
import { quorumError } from "./failure.js";
import { Poll } from "./poll.js";
import { RedlockGrant } from "./redlock-grant.js";
import { renewArgs, resumeArgs } from "./requests.js";
import type { Surroundings } from "./surroundings.js";
import { decodeRenewal, type Failure, type NodeRenewal } from "./vote.js";

/** Nobody waits for a node for longer; of a lease that is nearly over, a part of it is enough. */
const LONGEST_RENEWAL_MS = 5_000;
const LIMIT_PART = 5;
const RETRY_MS = 50;

type Answers = readonly (NodeRenewal | Failure | undefined)[];
type Asked = { readonly judgement: RenewalJudgement; readonly answers: Answers };

export class Renewals {
  readonly #around: Surroundings;

  constructor(around: Surroundings) {
    this.#around = around;
  }

  async renew(grant: RedlockGrant, ttlMs: number): Promise<Renewal> {
    const { port, nodes } = this.#around;
    // A renewal after the own deadline could revive what somebody else was promised.
    if (port.clock.exactMs() >= grant.deadlineMs) {
      return { type: "gone", reason: "expired", detail: "" };
    }
    const args = renewArgs(grant, ttlMs, this.#around);
    const { judgement, answers } = await this.#send(grant, ttlMs, args);
    if (judgement === "renewed") return { type: "renewed", waiting: false };
    if (judgement === "gone") return { type: "gone", ...lossOf(answers) };
    const about = { lockName: grant.claim.name, outcome: "unknown" } as const;
    return { type: "unknown", error: quorumError(nodes, answers, about) };
  }

  /**
   * Nobody here has believed in it so far, and its time may be over: somebody else may have had the
   * lock, so nothing is taken again, and only nodes count that have kept it all the time.
   */
  async resume(claim: Claim, keys: readonly string[], token: bigint): Promise<RedlockGrant | null> {
    const { port, nodes } = this.#around;
    const untilMs = port.clock.nowMs() + claim.storeTimeoutMs;
    const grant = new RedlockGrant(claim, keys, Number(token), Number.NEGATIVE_INFINITY);
    const args = resumeArgs(grant, this.#around);
    for (;;) {
      const { judgement, answers } = await this.#send(grant, claim.ttlMs, args);
      if (judgement === "gone") return null;
      if (judgement === "renewed") return port.clock.exactMs() < grant.deadlineMs ? grant : null;
      if (isHopeless(answers) || port.clock.nowMs() >= untilMs) {
        throw quorumError(nodes, answers, { lockName: claim.name, outcome: "unknown" });
      }
      await new Promise<void>((again) => port.timers.after(RETRY_MS, again, true));
    }
  }

  async #send(grant: RedlockGrant, ttlMs: number, args: readonly string[]): Promise<Asked> {
    const { isAnnounced, announce, driftFactor } = this.#around;
    const isKnown = isAnnounced(ttlMs) || (await announce(ttlMs));
    let poll = this.#poll(grant, ttlMs, args);
    let judgement = await poll.judged;
    // More was asked for than a majority may know of: then only the old deadline is certain.
    if (judgement === "renewed" && !isKnown) judgement = "unknown";
    const isShort = poll.answers.some(
      (answer) => answer?.type === "asleep" && answer.why === "short",
    );
    if (judgement === "unknown" && isShort && (await announce(ttlMs))) {
      poll = this.#poll(grant, ttlMs, args);
      judgement = await poll.judged;
    }
    if (judgement === "renewed") {
      // rule: quorum-renewal-counts-from-sending
      const untilMs = deadlineOf(poll.answers, poll.sentMs, driftFactor);
      grant.extend(untilMs);
    }
    return { judgement: judgement ?? "unknown", answers: poll.answers };
  }

  #poll(
    { keys, deadlineMs }: RedlockGrant,
    ttlMs: number,
    args: readonly string[],
  ): Poll<NodeRenewal, RenewalJudgement> {
    const { port, nodes, onVote } = this.#around;
    const restMs = Math.max(deadlineMs - port.clock.nowMs(), ttlMs / LIMIT_PART);
    return new Poll<NodeRenewal, RenewalJudgement>(port, {
      nodes,
      keys,
      args,
      limitMs: Math.min(restMs, LONGEST_RENEWAL_MS),
      decode: decodeRenewal,
      judge: judgeRenewal,
      onAnswer: (answer) => onVote(answer),
    });
  }
}

function lossOf(answers: Answers): Pick<GoneEvent, "reason" | "detail"> {
  for (const answer of answers) {
    if (answer?.type === "revoked") return { reason: "revoked", detail: answer.reason };
  }
  const isReplaced = answers.some((answer) => answer?.type === "replaced");
  return { reason: isReplaced ? "replaced" : "missing", detail: "" };
}
