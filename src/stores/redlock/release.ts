/**
 * Gives back what this client holds, or may hold: the release of a grant, which its caller waits
 * for, and withdrawals in the background.
 */
import type { Meta } from "../../contract/store.js";
import { Backoff } from "../../time/backoff.js";
import { pause } from "../../time/pause.js";
import { within } from "../../time/timers.js";
import { WorkUnderWay } from "../../time/work-under-way.js";
import { cannotReachMajority, judgeRelease } from "./answers.js";
import { quorumError } from "./errors.js";
import type { QuorumGrant } from "./grants.js";
import { decodeRelease, type NodeRelease, releaseArgs } from "./protocol.js";
import type { Poll, Quorum, RedlockNode } from "./quorum.js";

/** A poll ends as soon as a majority has answered. The poll after a silent one is longer. */
export const POLL_STEP_MS = 500;
const RELEASE_PAUSES = { firstMs: 50, longestMs: 1_000 };
const WITHDRAWAL_PAUSES = { firstMs: 100, longestMs: 2_000 };
const CALL_MS = 5_000;
/** A withdrawal is repeated for the ttl, within these limits: then its votes have expired. */
const MIN_CLEANUP_MS = 5_000;
const MAX_CLEANUP_MS = 30_000;

/** The votes that an attempt may have taken. */
export interface Withdrawal {
  readonly keys: readonly string[];
  readonly owner: string;
  readonly ballot: number;
  readonly ttlMs: number;
  /** The waiter that goes on waiting; null where none does. */
  readonly waiter: { readonly member: string; readonly since: string } | null;
}

export class Releases {
  readonly #quorum: Quorum;
  readonly #underWay = new WorkUnderWay();
  #isClosed = false;

  constructor(quorum: Quorum) {
    this.#quorum = quorum;
  }

  /**
   * Releases a grant. Resolves when a majority has said whether the lease was there; rejects when
   * that is not known by `untilMs`. `keep` leaves a mark.
   */
  async release(
    grant: QuorumGrant,
    untilMs: number,
    keep?: { readonly ttlMs: number; readonly meta: Meta },
  ): Promise<boolean> {
    const { runtime, nodes, reserveMs } = this.#quorum;
    const args = releaseArgs(grant.claim.owner, Number(grant.token), reserveMs);
    if (keep) args.push(`${Math.ceil(keep.ttlMs)}`, JSON.stringify(keep.meta));
    // A try that a node answered with `released`, or did not answer, may have released the lease
    // there, so a later `absent` from the same node counts as released. It does not count so with
    // a mark: a lease that expired or was revoked between two tries is absent as well, and then
    // nothing keeps another client from running the work again. A node that has the mark of an
    // earlier try says `released` by itself.
    let maybeReleased: Set<number> | null = null;
    const wasReleasedByUs = (at: number, isResent: boolean): boolean =>
      !keep && (isResent || (maybeReleased?.has(at) ?? false));
    let pauses: Backoff | null = null;
    for (let failures = 0; ; failures += 1) {
      const limitMs = Math.min(untilMs - runtime.clock.nowMs(), POLL_STEP_MS * (failures + 1));
      const poll = this.#poll(grant, args, Math.max(1, limitMs), wasReleasedByUs);
      const judgement = await poll.judged;
      if (judgement !== "silent" && judgement !== null) return judgement;
      maybeReleased ??= new Set();
      pauses ??= new Backoff(runtime.random, RELEASE_PAUSES);
      for (const [at, answer] of poll.answers.entries()) {
        const isUnanswered = answer?.type === "time_out" || answer?.type === "error";
        // rule: earlier-release-was-ours
        if (isUnanswered || answer?.type === "released") maybeReleased.add(at);
      }
      const pauseMs = pauses.nextMs();
      if (cannotReachMajority(poll.answers) || runtime.clock.nowMs() + pauseMs >= untilMs) {
        const about = { lockName: grant.claim.name, outcome: "unknown" } as const;
        throw quorumError(nodes, poll.answers, about);
      }
      await pause(runtime.timers, pauseMs, true);
    }
  }

  /**
   * Gives back the votes that an attempt may have got, on all nodes, including those that never
   * answered. The request to a node that fails is repeated until its vote has expired anyway.
   */
  withdraw({ keys, owner, ballot, ttlMs, waiter }: Withdrawal): void {
    const args = releaseArgs(owner, ballot, this.#quorum.reserveMs);
    if (waiter) args.push("0", "", waiter.member, waiter.since);
    for (const node of this.#quorum.nodes) this.#tellInBackground(node, keys, args, ttlMs);
  }

  /** Waits a moment for the requests under way. Those that fail are not repeated. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const { runtime, reserveMs } = this.#quorum;
    await within(runtime.timers, reserveMs, this.#underWay.settled()).catch(() => {});
  }

  #poll(
    { claim, keys }: QuorumGrant,
    args: readonly string[],
    limitMs: number,
    /** Whether an absent lease counts as released by this client. */
    wasReleasedByUs: (at: number, isResent: boolean) => boolean,
  ): Poll<NodeRelease, boolean | "silent"> {
    const { nodes } = this.#quorum;
    const before = nodes.map(({ driver }) => driver.changes());
    return this.#quorum.ask<NodeRelease, boolean | "silent">({
      keys,
      args,
      limitMs,
      decode: (raw, { driver }, at) => {
        const answer = decodeRelease(raw);
        if (answer.type !== "absent") return answer;
        const isResent = driver.changes() !== before[at];
        return wasReleasedByUs(at, isResent) ? { type: "released" } : answer;
      },
      judge: judgeRelease,
      onAnswer: (answer, at, isLate) => {
        const node = nodes[at];
        if (isLate && answer.type === "error" && node) {
          this.#tellInBackground(node, keys, args, claim.ttlMs);
        }
      },
    });
  }

  #tellInBackground(
    node: RedlockNode,
    keys: readonly string[],
    args: readonly string[],
    ttlMs: number,
  ): void {
    const cleanupMs = Math.min(Math.max(ttlMs, MIN_CLEANUP_MS), MAX_CLEANUP_MS);
    const untilMs = this.#quorum.runtime.clock.nowMs() + cleanupMs;
    void this.#underWay.add(this.#tell(node, keys, args, untilMs));
  }

  /** Does not reject. */
  async #tell(
    node: RedlockNode,
    keys: readonly string[],
    args: readonly string[],
    untilMs: number,
  ): Promise<void> {
    const { clock, timers, random } = this.#quorum.runtime;
    const pauses = new Backoff(random, WITHDRAWAL_PAUSES);
    for (;;) {
      try {
        return void decodeRelease(await this.#answer(node.ask(keys, args)));
      } catch {
        if (this.#isClosed || clock.nowMs() >= untilMs) return;
        await pause(timers, pauses.nextMs());
        if (this.#isClosed) return;
      }
    }
  }

  /** Ends after a time, but does not keep the process alive. */
  #answer(asked: Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const { timers } = this.#quorum.runtime;
      const timer = timers.after(CALL_MS, () => reject(new Error("No answer.")));
      asked.finally(() => timer.cancel()).then(resolve, reject);
    });
  }
}
