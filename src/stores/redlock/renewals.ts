/** Renewals of grants at all nodes, and the resumption of one that another process made. */
import type { Claim, GoneEvent, Renewal } from "../../store.js";
import { pause } from "../../time/pause.js";
import {
  deadlineOf,
  isAsleep,
  isHopeless,
  judgeRenewal,
  type RenewalJudgement,
} from "./answers.js";
import {
  decodeRenewal,
  type Failure,
  type Keeper,
  type NodeRenewal,
  renewArgs,
  resumeArgs,
} from "./codec.js";
import { quorumError } from "./failure.js";
import { RedlockGrant } from "./grants.js";
import type { Membership } from "./membership.js";
import type { Poll, Quorum } from "./quorum.js";

/** A node may take until the deadline, or a part of the ttl, but no longer than this. */
const LONGEST_RENEWAL_MS = 5_000;
const LIMIT_PART = 5;
const RETRY_MS = 50;

type Answers = readonly (NodeRenewal | Failure | undefined)[];
type Asked = { readonly judgement: RenewalJudgement; readonly answers: Answers };

export class Renewals {
  readonly #quorum: Quorum;
  readonly #membership: Membership;
  readonly #keeper: Keeper;

  constructor(quorum: Quorum, membership: Membership, { channel }: Pick<Keeper, "channel">) {
    this.#quorum = quorum;
    this.#membership = membership;
    this.#keeper = { setId: quorum.setId, channel };
  }

  async renew(grant: RedlockGrant, ttlMs: number): Promise<Renewal> {
    const { port, nodes } = this.#quorum;
    // A renewal after the deadline could revive a lease that another owner may have replaced.
    if (port.clock.exactMs() >= grant.deadlineMs) {
      return { type: "gone", reason: "expired", detail: "" };
    }
    const args = renewArgs(grant, ttlMs, this.#keeper);
    const { judgement, answers } = await this.#send(grant, ttlMs, args);
    if (judgement === "renewed") return { type: "renewed", waiting: false };
    if (judgement === "gone") return { type: "gone", ...lossOf(answers) };
    const about = { lockName: grant.claim.name, outcome: "unknown" } as const;
    return { type: "unknown", error: quorumError(nodes, answers, about) };
  }

  /**
   * Takes over a grant of another process; null when the grant is gone. The lease may be over, and
   * another owner may have held the lock since. So no node is taken again, and only nodes that have
   * kept the lease all the time count.
   */
  async resume(claim: Claim, keys: readonly string[], token: bigint): Promise<RedlockGrant | null> {
    const { port, nodes } = this.#quorum;
    const untilMs = port.clock.nowMs() + claim.storeTimeoutMs;
    const grant = new RedlockGrant(claim, keys, Number(token), Number.NEGATIVE_INFINITY);
    const args = resumeArgs(claim, token, this.#keeper);
    for (;;) {
      const { judgement, answers } = await this.#send(grant, claim.ttlMs, args);
      if (judgement === "gone") return null;
      if (judgement === "renewed") return port.clock.exactMs() < grant.deadlineMs ? grant : null;
      if (isHopeless(answers) || port.clock.nowMs() >= untilMs) {
        throw quorumError(nodes, answers, { lockName: claim.name, outcome: "unknown" });
      }
      await pause(port.timers, RETRY_MS, true);
    }
  }

  async #send(grant: RedlockGrant, ttlMs: number, args: readonly string[]): Promise<Asked> {
    const membership = this.#membership;
    const isKnown = membership.isAnnounced(ttlMs) || (await membership.announce(ttlMs));
    let poll = this.#poll(grant, ttlMs, args);
    let judgement = await poll.judged;
    // A majority may not know of leases of this length: only the old deadline is certain.
    if (judgement === "renewed" && !isKnown) judgement = "unknown";
    const isShort = poll.answers.some((answer) => isAsleep(answer, "short"));
    if (judgement === "unknown" && isShort && (await membership.announce(ttlMs))) {
      poll = this.#poll(grant, ttlMs, args);
      judgement = await poll.judged;
    }
    if (judgement === "renewed") {
      // rule: quorum-renewal-counts-from-sending
      const untilMs = deadlineOf(poll.answers, poll.sentMs, this.#quorum.driftFactor);
      grant.extend(untilMs);
    }
    return { judgement: judgement ?? "unknown", answers: poll.answers };
  }

  #poll(
    { keys, deadlineMs }: RedlockGrant,
    ttlMs: number,
    args: readonly string[],
  ): Poll<NodeRenewal, RenewalJudgement> {
    const restMs = Math.max(deadlineMs - this.#quorum.port.clock.nowMs(), ttlMs / LIMIT_PART);
    return this.#quorum.ask<NodeRenewal, RenewalJudgement>({
      keys,
      args,
      limitMs: Math.min(restMs, LONGEST_RENEWAL_MS),
      decode: decodeRenewal,
      judge: judgeRenewal,
      onAnswer: (answer) => this.#membership.onAnswer(answer),
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
