/**
 * Renews the grants of this client in batches, and resumes a grant that another process made.
 *
 * Why a batch is safe: each lease is judged by itself, from its own answers of this batch alone,
 * and its deadline counts from just before this batch was sent. A node answers with what it kept at
 * that moment or later. So a batch proves for each lease what a request of its own would prove.
 */

import type { Claim, Loss, Renewal } from "../../contract/store.js";
import { present } from "../../errors/assert.js";
import { list, Unreadable } from "../../events/foreign-data.js";
import { pause } from "../../time/pause.js";
import { cannotReachMajority, deadlineOf, isNotVoting, judgeRenewal } from "./answers.js";
import { nodeError, quorumError } from "./errors.js";
import { type Grants, QuorumGrant } from "./grants.js";
import type { Membership } from "./membership.js";
import {
  decodeRenewal,
  type Failure,
  type NodeRenewal,
  type RenewingClient,
  renewalsCall,
  resumeArgs,
} from "./protocol.js";
import type { Poll, Quorum, RedlockNode } from "./quorum.js";

/** A node may take until the deadline, or a part of the ttl, but no longer than this. */
const MAX_RENEWAL_MS = 5_000;
const LIMIT_PART = 5;
const RETRY_MS = 50;
/** A call with more leases would block its server for longer than a few milliseconds. */
export const MAX_LEASES = 200;

/** A lease to be renewed. */
export interface Lease {
  readonly grant: QuorumGrant;
  readonly ttlMs: number;
}

type Answer = NodeRenewal | Failure | undefined;
type Results = Map<Lease, Renewal>;

const ENDED: Renewal = { type: "ended" };

export class Renewals {
  readonly #quorum: Quorum;
  readonly #membership: Membership;
  readonly #grants: Grants;
  readonly #client: RenewingClient;

  constructor(
    quorum: Quorum,
    membership: Membership,
    grants: Grants,
    { channel }: Pick<RenewingClient, "channel">,
  ) {
    this.#quorum = quorum;
    this.#membership = membership;
    this.#grants = grants;
    this.#client = { setId: quorum.setId, channel };
  }

  /**
   * Renews the leases; the results have the order of the leases. A grant is extended as soon as its
   * own answers suffice, not only when the last lease has its result.
   */
  async renew(leases: readonly Lease[]): Promise<readonly Renewal[]> {
    const results: Results = new Map();
    // An announcement may end at any time, so each lease is asked about once.
    const others = new Set(leases);
    for (const lease of leases) {
      const error = this.#membership.refusalOf(lease.ttlMs);
      if (!error) continue;
      results.set(lease, { type: "unknown", error });
      others.delete(lease);
    }
    const announced = [...others].filter(({ ttlMs }) => this.#membership.isAnnounced(ttlMs));
    for (const lease of announced) others.delete(lease);
    await Promise.all([
      this.#renewAll(announced, true, results),
      this.#announceAndRenew([...others], results),
    ]);
    return leases.map((lease) => present(results.get(lease), "Every renewal has a result."));
  }

  /**
   * Takes over a grant of another process; returns null if the grant is gone. The lease may have
   * expired, and another owner may have held the lock since. So no node grants it again, and only
   * nodes that have kept the lease all the time count.
   */
  async resume(claim: Claim, keys: readonly string[], token: bigint): Promise<QuorumGrant | null> {
    const { runtime, nodes } = this.#quorum;
    const { ttlMs } = claim;
    const untilMs = runtime.clock.nowMs() + claim.storeTimeoutMs;
    const grant = new QuorumGrant(claim, keys, Number(token), Number.NEGATIVE_INFINITY);
    const lease = { grant, ttlMs };
    for (let isForgotten = false; ; ) {
      const isKnown: boolean =
        (!isForgotten && this.#membership.isAnnounced(ttlMs)) ||
        (await this.#membership.announce(ttlMs));
      const poll: Poll<NodeRenewal, Renewal> = this.#quorum.ask({
        keys,
        args: resumeArgs(claim, token, this.#client),
        limitMs: this.#limitMs(lease),
        decode: decodeRenewal,
        judge: (answers, sentMs) => this.#judge(lease, answers, sentMs, isKnown),
        onAnswer: (answer) => this.#membership.onAnswer(answer),
      });
      const renewal = await poll.judged;
      if (renewal?.type === "ended") return null;
      if (renewal?.type === "renewed")
        return runtime.clock.exactMs() < grant.deadlineMs ? grant : null;
      if (cannotReachMajority(poll.answers) || runtime.clock.nowMs() >= untilMs) {
        throw quorumError(nodes, poll.answers, { lockName: claim.name, outcome: "unknown" });
      }
      isForgotten = poll.answers.some((answer) => isNotVoting(answer, "short"));
      await pause(runtime.timers, RETRY_MS, true);
    }
  }

  /** Leases of a length that a majority may not know of yet. */
  async #announceAndRenew(
    leases: readonly Lease[],
    results: Results,
    isRepeated = false,
  ): Promise<void> {
    if (leases.length === 0) return;
    const longestMs = Math.max(...leases.map(({ ttlMs }) => ttlMs));
    const isKnown = await this.#membership.announce(longestMs);
    await this.#renewAll(leases, isKnown, results, isRepeated);
  }

  /** `isKnown`: a majority certainly knows of leases of these lengths. */
  async #renewAll(
    leases: readonly Lease[],
    isKnown: boolean,
    results: Results,
    isRepeated = false,
  ): Promise<void> {
    const batches: Promise<void>[] = [];
    const shards = new Map<number, Lease[]>();
    for (const lease of leases) {
      const shard = this.#quorum.shardOf(lease.grant.keys);
      const others = shards.get(shard);
      if (others) others.push(lease);
      else shards.set(shard, [lease]);
    }
    for (const shard of shards.values()) {
      for (let start = 0; start < shard.length; start += MAX_LEASES) {
        const batch = shard.slice(start, start + MAX_LEASES);
        batches.push(this.#batch(batch, isKnown, results, isRepeated));
      }
    }
    await Promise.all(batches);
  }

  async #batch(
    given: readonly Lease[],
    isKnown: boolean,
    results: Results,
    isRepeated: boolean,
  ): Promise<void> {
    const nowMs = this.#quorum.runtime.clock.exactMs();
    const leases = given.filter((lease) => {
      // A renewal after the deadline could revive a lease that another owner may have replaced.
      const isOver = nowMs >= lease.grant.deadlineMs;
      if (!isOver) return true;
      this.#grants.lose(lease.grant, "expired", "");
      results.set(lease, ENDED);
      return false;
    });
    if (leases.length === 0) return;
    const poll = this.#quorum.ask<readonly NodeRenewal[], true>({
      ...renewalsCall(leases, this.#client),
      limitMs: Math.max(...leases.map((lease) => this.#limitMs(lease))),
      decode: (raw, node) => decodeBatch(raw, leases.length, node),
      judge: (answers, sentMs) => {
        let isOpen = false;
        for (const [at, lease] of leases.entries()) {
          if (results.has(lease)) continue;
          const renewal = this.#judge(lease, answersFor(answers, at), sentMs, isKnown);
          if (renewal) results.set(lease, renewal);
          else isOpen = true;
        }
        return isOpen ? null : true;
      },
      onAnswer: (answer) => {
        for (const one of "type" in answer ? [answer] : answer) this.#membership.onAnswer(one);
      },
    });
    await poll.judged;
    const short = leases.filter((lease, at) => {
      const isShort = answersFor(poll.answers, at).some((answer) => isNotVoting(answer, "short"));
      return results.get(lease)?.type === "unknown" && isShort;
    });
    // A node does not know of leases of this length: the announcement is repeated, once.
    if (isRepeated || short.length === 0) return;
    for (const lease of short) results.delete(lease);
    await this.#announceAndRenew(short, results, true);
  }

  /** The result for one lease; null while it is open. Extends the grant where it is renewed. */
  #judge(
    { grant }: Lease,
    answers: readonly Answer[],
    sentMs: number,
    isKnown: boolean,
  ): Renewal | null {
    const judgement = judgeRenewal(answers);
    if (judgement === null) return null;
    if (judgement === "gone") {
      const { reason, detail } = lossOf(answers);
      // Nothing may rely on the grant from here on, not even until its batch is answered.
      // rule: lost-majority-ends-the-grant
      this.#grants.lose(grant, reason, detail);
      return ENDED;
    }
    // A majority may not know of leases of this length: only the old deadline is certain.
    if (judgement === "renewed" && isKnown) {
      // rule: quorum-renewal-counts-from-sending
      const untilMs = deadlineOf(answers, sentMs, this.#quorum.driftFactor);
      grant.extend(untilMs);
      return { type: "renewed", waiting: false };
    }
    const about = { lockName: grant.claim.name, outcome: "unknown" } as const;
    return { type: "unknown", error: quorumError(this.#quorum.nodes, answers, about) };
  }

  #limitMs({ grant, ttlMs }: Lease): number {
    const restMs = grant.deadlineMs - this.#quorum.runtime.clock.nowMs();
    return Math.min(Math.max(restMs, ttlMs / LIMIT_PART), MAX_RENEWAL_MS);
  }
}

/** One answer for each lease. An answer that cannot be read harms its own lease only. */
function decodeBatch(raw: unknown, leases: number, node: RedlockNode): NodeRenewal[] {
  const parts = list(raw);
  if (parts.length !== leases) throw new Unreadable(`${leases} answers`);
  return parts.map((part) => {
    try {
      const [code, message] = list(part);
      if (code === "E") return { type: "error", error: nodeError(node.name, message) };
      const answer = decodeRenewal(part);
      if (answer.type === "foreign") node.reportForeign(`"${answer.key}", a ${answer.holds}`);
      return answer;
    } catch (cause) {
      return { type: "error", error: node.reportForeign("the reply to renew", cause) };
    }
  });
}

/** The answers of all nodes for one lease of a batch. A failure of a node counts for each lease. */
function answersFor(
  answers: readonly (readonly NodeRenewal[] | Failure | undefined)[],
  at: number,
): Answer[] {
  return answers.map((answer) => (answer && !("type" in answer) ? answer[at] : answer));
}

function lossOf(answers: readonly Answer[]): Loss {
  for (const answer of answers) {
    if (answer?.type === "revoked") return { reason: "revoked", detail: answer.reason };
  }
  const isReplaced = answers.some((answer) => answer?.type === "replaced");
  return { reason: isReplaced ? "replaced" : "missing", detail: "" };
}
