/**
 * One acquisition, from the first round of votes to a grant or the end of the wait.
 *
 * It holds the lock in one case only: in one round, a majority of the nodes voted for its owner at
 * exactly the ballot of that round, and the deadline has not passed. However else a round ends, its
 * votes are given back on all nodes before the next round: a node that votes late finds that the
 * ballot was closed.
 */

import type { Busy, Claim, Wait } from "../../contract/store.js";
import type { StoreError } from "../../errors/index.js";
import { lateGrantError, MAX_LATE_GRANTS } from "../../families/acquire-errors.js";
import type { MetaText } from "../../rules/meta-text.js";
import { keyOf } from "../../rules/name.js";
import { Backoff } from "../../time/backoff.js";
import {
  type Answers,
  aheadOf,
  busyBy,
  cannotReachMajority,
  deadlineOf,
  highestStored,
  isHeldBy,
  isNotVoting,
  type Judgement,
  judge,
  mayHaveVoted,
  outcomeOf,
  votesInMs,
} from "./answers.js";
import { quorumError } from "./errors.js";
import { type Grants, QuorumGrant } from "./grants.js";
import type { Membership } from "./membership.js";
import {
  ballotClock,
  decodeVote,
  nextBallot,
  type SeenBallots,
  type Vote,
  voteArgs,
} from "./protocol.js";
import type { Poll, Quorum } from "./quorum.js";
import type { Releases } from "./release.js";
import { Waiter, type WakeUps } from "./waiting.js";

/** After this many rounds in a row with ever higher ballots, another proposer is about to win. */
const MAX_RAISES = 5;
/** How often a call that does not wait tries when it splits the votes with another proposer. */
const MAX_SPLIT_TRIES = 5;
const SPLIT_PAUSES = { firstMs: 15, longestMs: 75 };
const FAILURE_PAUSES = { firstMs: 30, longestMs: 1_500 };

type Round = Poll<Vote, Judgement>;

/** The parts of the store that an acquisition works with. */
export interface AcquisitionParts {
  readonly quorum: Quorum;
  readonly membership: Membership;
  readonly wakeUps: WakeUps;
  readonly releases: Releases;
  readonly grants: Grants;
  readonly seen: SeenBallots;
  readonly metaText: MetaText;
  /** A waiter looks at the lock at least this often. */
  readonly pollMs: number;
}

export class Acquisition {
  readonly #claim: Claim;
  readonly #keys: readonly string[];
  readonly #wait: Wait | null;
  readonly #parts: AcquisitionParts;
  readonly #waiter: Waiter | null;
  readonly #name: string;
  #splitPauses: Backoff | null = null;
  /** Null until a failure, and again when a majority has answered. */
  #failurePauses: Backoff | null = null;
  #round: Round | null = null;
  /** The owners of the earlier attempts of a try. */
  #earlierOwners: readonly string[] | null = null;
  #isEnded = false;
  #late = 0;
  #splits = 0;
  #failures = 0;
  #patientUntilMs = 0;
  #onPauseEnd: () => void = () => {};

  constructor(claim: Claim, keys: readonly string[], wait: Wait | null, parts: AcquisitionParts) {
    const { quorum, wakeUps } = parts;
    this.#claim = claim;
    this.#keys = keys;
    this.#wait = wait;
    this.#parts = parts;
    this.#name = keyOf(claim.space, claim.name);
    const rules = { limitMs: quorum.limitMs(claim.ttlMs, 0), pollMs: parts.pollMs };
    this.#waiter = wait ? new Waiter(keys, quorum, wakeUps, rules) : null;
  }

  async run(): Promise<QuorumGrant | Busy> {
    this.#onHeard();
    this.#wait?.onEnd(() => this.giveUp());
    const { grants } = this.#parts;
    let claim = this.#claim;
    try {
      for (; !this.#isEnded; claim = this.#underNewOwner()) {
        grants.expect(claim.owner, this.#keys);
        const result = await this.#attempt(claim);
        grants.giveUp(claim.owner);
        if (!result) {
          if (!this.#wait) this.#earlierOwners = [...(this.#earlierOwners ?? []), claim.owner];
          continue;
        }
        // A new holder does not wait until the nodes have removed it from their queues.
        const left = this.#waiter?.leave(result.type === "granted");
        if (result.type === "busy") await left;
        return result;
      }
      await this.#waiter?.leave(false);
      return this.#waiter?.busy ?? { type: "busy", holder: null, mark: null };
    } catch (error) {
      grants.giveUp(claim.owner);
      await this.#waiter?.leave(false);
      throw error;
    }
  }

  /** The wait is over, or the store closes. */
  giveUp(): void {
    this.#isEnded = true;
    this.#round?.cut();
    this.#waiter?.end();
    this.#onPauseEnd();
  }

  #underNewOwner(): Claim {
    return { ...this.#claim, owner: this.#parts.quorum.runtime.random.id() };
  }

  /** Null when another attempt is worth it; by then the event to wait for has come. */
  async #attempt(claim: Claim): Promise<QuorumGrant | Busy | null> {
    const { seen, quorum, membership } = this.#parts;
    const { runtime } = quorum;
    for (let raises = 0; ; raises += 1) {
      // rule: long-leases-are-announced
      const isKnown =
        membership.isAnnounced(claim.ttlMs) ||
        (await this.#orEnd(membership.announce(claim.ttlMs)));
      if (this.#isEnded && raises === 0) return null;
      const ballot = nextBallot(ballotClock(runtime), seen.of(this.#name));
      // rule: only-the-final-ballot-counts
      const round = this.#vote(claim, ballot);
      this.#round = round;
      const judgement = await round.judged;
      this.#round = null;
      const { answers } = round;
      seen.note(this.#name, Math.max(ballot, highestStored(answers)), runtime.clock.wallUs());
      if (judgement === "granted" && isKnown) return this.#accept(claim, ballot, round);
      if (judgement === "raise" && raises < MAX_RAISES && !this.#isEnded) continue;
      // A node that has not answered yet may still queue the waiter; the withdrawal follows that
      // request.
      if (judgement === null) this.#waiter?.enter();
      const isTaken = answers.some((answer) => mayHaveVoted(answer));
      // The withdrawal names the waiter if it keeps waiting, so that all nodes have it in their
      // queues.
      // rule: failed-round-is-given-back
      if (isTaken || raises > 0) this.#withdraw(claim.owner, ballot, !this.#isEnded);
      if (this.#isEnded || judgement === null) return null;
      // A grant does not count if no majority knows of leases of this length.
      if (judgement === "granted" || judgement === "not_voting") return this.#onNotVoting(answers);
      return judgement === "silent" ? this.#silent(answers) : this.#refused(answers);
    }
  }

  #vote(claim: Claim, ballot: number): Round {
    const { quorum, wakeUps, metaText, membership } = this.#parts;
    const { ttlMs } = claim;
    const waiter = this.#waiter;
    waiter?.begin(ballot);
    return quorum.ask<Vote, Judgement>({
      keys: this.#keys,
      args: voteArgs({
        claim,
        ballot,
        waiter,
        channel: wakeUps.channel,
        metaText: metaText.of(claim.meta),
        setId: quorum.setId,
        maxTtlMs: membership.maxTtlMs,
      }),
      limitMs: this.#limitMs(ttlMs),
      decode: (raw) => decodeVote(raw, ttlMs),
      judge,
      onAnswer: (vote, at) => {
        waiter?.onVote(vote, at);
        membership.onAnswer(vote);
      },
    });
  }

  /** The limit of a round. After a silent one it is the time left, but enough for one answer. */
  #limitMs(ttlMs: number): number {
    const { quorum } = this.#parts;
    const leastMs = quorum.limitMs(ttlMs, 0);
    if (this.#failures === 0) return leastMs;
    const restMs = this.#patientUntilMs - quorum.runtime.clock.nowMs();
    return Math.min(quorum.limitMs(ttlMs, this.#failures), Math.max(leastMs, restMs));
  }

  #accept(claim: Claim, ballot: number, { answers, sentMs }: Round): QuorumGrant | null {
    const { runtime, driftFactor } = this.#parts.quorum;
    const { grants, membership } = this.#parts;
    membership.onMajority();
    // rule: quorum-deadline-counts-from-sending
    const deadlineMs = deadlineOf(answers, sentMs, driftFactor);
    const isLate = runtime.clock.exactMs() + (claim.minUsefulMs ?? 0) >= deadlineMs;
    // rule: quorum-late-grant-is-given-back
    if (!isLate && !this.#isEnded) {
      const grant = new QuorumGrant(claim, this.#keys, ballot, deadlineMs);
      grants.add(grant);
      if (!grant.loss) return grant;
      this.#withdraw(claim.owner, ballot, true);
      return null;
    }
    this.#withdraw(claim.owner, ballot, false);
    if (this.#isEnded) return null;
    this.#late += 1;
    if (this.#late < MAX_LATE_GRANTS && this.#wait) return null;
    throw lateGrantError(claim, "redlock");
  }

  async #refused(answers: Answers): Promise<Busy | null> {
    this.#parts.membership.onMajority();
    this.#onHeard();
    const busy = busyBy(answers, this.#parts.quorum.runtime.clock.wallUs() / 1000);
    if (busy.mark) return busy;
    const waiter = this.#waiter;
    if (waiter) {
      this.#wait?.report(busy.holder, aheadOf(answers));
      const turn = await waiter.turn(answers, busy, (holder, ahead) => {
        this.#onHeard();
        this.#wait?.report(holder, ahead);
      });
      if (turn === "silent") return this.#silent(waiter.answers);
      return null;
    }
    // No owner holds the lock: proposers that asked at the same time split the votes, or a late
    // vote for an earlier attempt of this try is still being given back.
    const isSplit = !answers.some((vote) => {
      if (vote?.type !== "held" || !isHeldBy(answers, vote)) return false;
      return !vote.record || !this.#earlierOwners?.includes(vote.record.value);
    });
    this.#splits += 1;
    if (!isSplit || this.#splits === MAX_SPLIT_TRIES) return busy;
    this.#splitPauses ??= new Backoff(this.#parts.quorum.runtime.random, SPLIT_PAUSES);
    await this.#pause(this.#splitPauses.nextMs());
    return null;
  }

  async #onNotVoting(answers: Answers): Promise<null> {
    const { ttlMs } = this.#claim;
    const { quorum, membership } = this.#parts;
    const isOfOtherSet = answers.some((vote) => isNotVoting(vote, "other_set"));
    if (isOfOtherSet && this.#failures > 0) throw this.#error(answers);
    if (answers.some((vote) => isNotVoting(vote, "short"))) {
      await this.#orEnd(membership.announce(ttlMs));
    }
    const isUnknown = (vote: Answers[number]): boolean =>
      isNotVoting(vote, "unmarked") || isNotVoting(vote, "unfloored");
    const isFirst = this.#failures === 0;
    if (isFirst || answers.some(isUnknown)) await this.#orEnd(membership.readmit());
    if (this.#isEnded) return null;
    // With `bootstrap: "now"`, the nodes may vote right after the first readmission.
    const waitMs = isFirst ? 0 : votesInMs(answers);
    const restMs = this.#patientUntilMs - quorum.runtime.clock.nowMs();
    // A wait that cannot end in time is refused at once, with advice.
    if (restMs <= 0 || waitMs > restMs || (waitMs > 0 && !this.#wait)) throw this.#error(answers);
    this.#failures += 1;
    if (waitMs > 0 || this.#failures > 1) {
      await this.#pause(Math.max(waitMs, this.#failurePauseMs()));
    }
    return null;
  }

  async #silent(answers: Answers): Promise<null> {
    const restMs = this.#patientUntilMs - this.#parts.quorum.runtime.clock.nowMs();
    if (restMs <= 0 || cannotReachMajority(answers)) throw this.#error(answers);
    this.#failures += 1;
    await this.#pause(Math.min(restMs, this.#failurePauseMs()));
    return null;
  }

  #error(answers: Answers): StoreError {
    const { nodes } = this.#parts.quorum;
    const outcome = outcomeOf(answers);
    return quorumError(nodes, answers, { lockName: this.#claim.name, outcome });
  }

  #withdraw(owner: string, ballot: number, goesOn: boolean): void {
    const { quorum, releases, seen } = this.#parts;
    const { ttlMs } = this.#claim;
    const waiter = goesOn ? this.#waiter : null;
    waiter?.enter();
    releases.withdraw({ keys: this.#keys, owner, ballot, ttlMs, waiter });
    seen.note(this.#name, ballot + 1, quorum.runtime.clock.wallUs());
  }

  /** Called when a majority has answered: the silence limit starts again. */
  #onHeard(): void {
    this.#failures = 0;
    this.#failurePauses = null;
    this.#patientUntilMs = this.#parts.quorum.runtime.clock.nowMs() + this.#claim.storeTimeoutMs;
  }

  #failurePauseMs(): number {
    this.#failurePauses ??= new Backoff(this.#parts.quorum.runtime.random, FAILURE_PAUSES);
    return this.#failurePauses.nextMs();
  }

  /** Resolves with null as soon as the wait ends. The request goes on, for other acquisitions. */
  #orEnd<T>(asked: Promise<T>): Promise<T | null> {
    return new Promise((resolve, reject) => {
      this.#onPauseEnd = () => resolve(null);
      asked.then(resolve, reject);
      if (this.#isEnded) resolve(null);
    });
  }

  #pause(delayMs: number): Promise<void> {
    if (this.#isEnded) return Promise.resolve();
    return new Promise((resume) => {
      // The time limit of a call that does not wait keeps the process alive until it ends. A call
      // that its caller has aborted may still pause here, but nobody waits for its result.
      const keepAlive = this.#wait !== null;
      const timer = this.#parts.quorum.runtime.timers.after(delayMs, resume, keepAlive);
      this.#onPauseEnd = () => {
        timer.cancel();
        resume();
      };
    });
  }
}
