/**
 * One acquisition, from the first round of votes to a grant or the end of the wait.
 *
 * It believes that it holds in one case only: in one round, a majority of the nodes voted for its
 * owner at the very ballot of that round, and the time it may rely on is not over yet. However a
 * round ends otherwise, what it may have taken is given back, on all nodes, before anything else is
 * asked: a node that votes late finds that its ballot was closed.
 */
import { StoreError } from "../../errors.js";
import { keyOf } from "../../rules/name.js";
import type { Busy, Claim, Wait } from "../../store.js";
import {
  type Answers,
  aheadOf,
  busyBy,
  isAsleep,
  isHeldBy,
  isHopeless,
  mayHaveVoted,
  outcomeOf,
  wakesInMs,
} from "./answers.js";
import {
  ballotClock,
  deadlineOf,
  highestStored,
  type Judgement,
  judge,
  nextBallot,
} from "./ballot.js";
import { quorumError } from "./failure.js";
import { Poll } from "./poll.js";
import { RedlockGrant } from "./redlock-grant.js";
import { voteArgs } from "./requests.js";
import type { Surroundings } from "./surroundings.js";
import { decodeVote, type Vote } from "./vote.js";
import { Waiting } from "./waiting.js";

/** Rounds in a row for ever higher ballots; after that somebody else is about to win. */
const MOST_RAISES = 5;
/** So many answers in a row that came after the lease was over: the ttl is too short. */
const MOST_LATE_GRANTS = 3;
/** A try that meets another one half-way is made again. */
const MOST_SPLIT_TRIES = 5;
const RETRY_MS = 10;
const LONGEST_RETRY_MS = 1_000;

type Round = Poll<Vote, Judgement>;

export class Acquisition {
  readonly #claim: Claim;
  readonly #keys: readonly string[];
  readonly #wait: Wait | null;
  readonly #around: Surroundings;
  readonly #waiting: Waiting | null;
  readonly #name: string;
  #round: Round | null = null;
  #isEnded = false;
  #late = 0;
  #splits = 0;
  #failures = 0;
  #patientUntilMs = 0;
  #onPauseEnd: () => void = () => {};

  constructor(claim: Claim, keys: readonly string[], wait: Wait | null, around: Surroundings) {
    this.#claim = claim;
    this.#keys = keys;
    this.#wait = wait;
    this.#around = around;
    this.#name = keyOf(claim.space, claim.name);
    this.#waiting = wait ? new Waiting(claim, keys, around) : null;
  }

  async run(): Promise<RedlockGrant | Busy> {
    this.#beHeard();
    this.#wait?.onEnd(() => this.giveUp());
    try {
      for (let attempt = this.#claim; !this.#isEnded; attempt = this.#again()) {
        const outcome = await this.#attempt(attempt);
        if (!outcome) continue;
        // Whoever holds has better things to do than to wait for this.
        const left = this.#waiting?.leave(outcome.type === "granted");
        if (outcome.type === "busy") await left;
        return outcome;
      }
      await this.#waiting?.leave(false);
      return this.#waiting?.busy ?? { type: "busy", holder: null, mark: null };
    } catch (error) {
      await this.#waiting?.leave(false);
      throw error;
    }
  }

  /** The wait is over, or the store closes. */
  giveUp(): void {
    this.#isEnded = true;
    this.#round?.cut();
    this.#waiting?.end();
    this.#onPauseEnd();
  }

  #again(): Claim {
    return { ...this.#claim, owner: this.#around.port.random.id() };
  }

  /** Null when it is worth another attempt; by then whatever there was to wait for has come. */
  async #attempt(claim: Claim): Promise<RedlockGrant | Busy | null> {
    const { seen, port, isAnnounced, announce } = this.#around;
    for (let raises = 0; ; raises += 1) {
      // rule: long-leases-are-announced
      const isKnown = isAnnounced(claim.ttlMs) || (await this.#orEnd(announce(claim.ttlMs)));
      if (this.#isEnded && raises === 0) return null;
      const ballot = nextBallot(ballotClock(port), seen.of(this.#name));
      // rule: only-the-final-ballot-counts
      const round = this.#vote(claim, ballot);
      this.#round = round;
      const judgement = await round.judged;
      this.#round = null;
      const { answers } = round;
      seen.note(this.#name, Math.max(ballot, highestStored(answers)), port.clock.wallUs());
      if (judgement === "granted" && isKnown) return this.#accept(claim, ballot, round);
      if (judgement === "raise" && raises < MOST_RAISES && !this.#isEnded) continue;
      // A node that has not answered yet may enter us: it is told to forget us right behind.
      if (judgement === null) this.#waiting?.enter();
      const isTaken = answers.some((answer) => mayHaveVoted(answer));
      // Who goes on waiting says so where it gives back, so that all nodes know who was first.
      // rule: failed-round-is-given-back
      if (isTaken || raises > 0) this.#withdraw(claim.owner, ballot, !this.#isEnded);
      if (this.#isEnded || judgement === null) return null;
      if (judgement === "granted") return this.#asleep(answers);
      return this.#decide(judgement === "raise" ? "refused" : judgement, answers);
    }
  }

  #vote(claim: Claim, ballot: number): Round {
    const { port, nodes, setId, limitMs, metaText, onVote, wakeUps } = this.#around;
    const { ttlMs } = claim;
    const waiting = this.#waiting;
    waiting?.begin(ballot);
    return new Poll<Vote, Judgement>(port, {
      nodes,
      keys: this.#keys,
      args: voteArgs(claim, ballot, wakeUps.channel, metaText(claim), setId, waiting),
      limitMs: Math.min(limitMs(ttlMs, this.#failures), this.#leftMs(limitMs(ttlMs, 0))),
      decode: (raw) => decodeVote(raw, ttlMs),
      judge,
      onAnswer: (vote, at) => {
        waiting?.onVote(vote, at);
        onVote(vote);
      },
    });
  }

  #accept(claim: Claim, ballot: number, { answers, sentMs }: Round): RedlockGrant | null {
    const { port, driftFactor } = this.#around;
    this.#around.onMajority();
    // rule: quorum-deadline-counts-from-sending
    const deadlineMs = deadlineOf(answers, sentMs, driftFactor);
    const isLate = port.clock.exactMs() + (claim.leastMs ?? 0) >= deadlineMs;
    // rule: quorum-late-grant-is-given-back
    if (!isLate && !this.#isEnded) {
      return new RedlockGrant(claim, this.#keys, ballot, deadlineMs);
    }
    this.#withdraw(claim.owner, ballot, false);
    if (this.#isEnded) return null;
    this.#late += 1;
    if (this.#late < MOST_LATE_GRANTS && this.#wait) return null;
    throw new StoreError(
      `A majority answers more slowly than a lease of ${claim.ttlMs} ms lasts: raise ttlMs.`,
      { outcome: "not_applied", lockName: claim.name, store: "redlock" },
    );
  }

  async #decide(
    judgement: "refused" | "asleep" | "silent",
    answers: Answers,
  ): Promise<Busy | null> {
    if (judgement === "refused") {
      this.#around.onMajority();
      this.#beHeard();
      return this.#refused(answers);
    }
    if (judgement === "asleep") return this.#asleep(answers);
    return this.#silent(answers);
  }

  async #refused(answers: Answers): Promise<Busy | null> {
    const busy = busyBy(answers, this.#around.port.clock.wallUs() / 1000);
    if (busy.mark) return busy;
    const waiting = this.#waiting;
    if (waiting) {
      this.#wait?.report(busy.holder, aheadOf(answers));
      const isServed = await waiting.turn(answers, busy, (holder, ahead) => {
        this.#beHeard();
        this.#wait?.report(holder, ahead);
      });
      if (isServed === "silent") return this.#silent(waiting.answers);
      return null;
    }
    // Nobody holds it: two who tried at once are in each other's way.
    const isSplit = !answers.some((vote) => vote?.type === "held" && isHeldBy(answers, vote));
    this.#splits += 1;
    if (!isSplit || this.#splits === MOST_SPLIT_TRIES) return busy;
    await this.#pause(this.#jittered(RETRY_MS * this.#splits));
    return null;
  }

  async #asleep(answers: Answers): Promise<null> {
    const { ttlMs } = this.#claim;
    const { port, readmit, announce } = this.#around;
    const isStrange = answers.some((vote) => isAsleep(vote, "other_set"));
    if (isStrange && this.#failures > 0) throw this.#error(answers);
    if (answers.some((vote) => isAsleep(vote, "short"))) await this.#orEnd(announce(ttlMs));
    const isUnknown = (vote: Answers[number]): boolean =>
      isAsleep(vote, "unmarked") || isAsleep(vote, "unfloored");
    const isFirst = this.#failures === 0;
    if (isFirst || answers.some(isUnknown)) await this.#orEnd(readmit());
    if (this.#isEnded) return null;
    // Whoever vouches for the nodes may have woken them by that.
    const waitMs = isFirst ? 0 : wakesInMs(answers);
    const restMs = this.#patientUntilMs - port.clock.nowMs();
    // To wait for longer than anybody would is of no use: they are told at once, and how to go on.
    if (restMs <= 0 || waitMs > restMs || (waitMs > 0 && !this.#wait)) throw this.#error(answers);
    this.#failures += 1;
    if (waitMs > 0 || this.#failures > 1) await this.#pause(Math.max(waitMs, this.#retryMs()));
    return null;
  }

  async #silent(answers: Answers): Promise<null> {
    const restMs = this.#patientUntilMs - this.#around.port.clock.nowMs();
    if (restMs <= 0 || isHopeless(answers)) throw this.#error(answers);
    this.#failures += 1;
    await this.#pause(Math.min(restMs, this.#retryMs()));
    return null;
  }

  #error(answers: Answers): StoreError {
    const { nodes } = this.#around;
    const outcome = outcomeOf(answers);
    return quorumError(nodes, answers, { lockName: this.#claim.name, outcome });
  }

  #withdraw(owner: string, ballot: number, goesOn: boolean): void {
    const { ttlMs } = this.#claim;
    const waiting = goesOn ? this.#waiting : null;
    const [waiter, since] = [waiting?.enter() ?? "", waiting?.since ?? "0"];
    this.#around.withdraw({ keys: this.#keys, owner, ballot, ttlMs, waiter, since });
    this.#around.seen.note(this.#name, ballot + 1, this.#around.port.clock.wallUs());
  }

  /** A majority answered: the patience with their silence begins anew. */
  #beHeard(): void {
    this.#failures = 0;
    this.#patientUntilMs = this.#around.port.clock.nowMs() + this.#claim.storeTimeoutMs;
  }

  /** What is left of the patience with the nodes, but enough for one answer. */
  #leftMs(leastMs: number): number {
    return Math.max(leastMs, this.#patientUntilMs - this.#around.port.clock.nowMs());
  }

  #retryMs(): number {
    return this.#jittered(Math.min(RETRY_MS * 2 ** this.#failures, LONGEST_RETRY_MS));
  }

  #jittered(delayMs: number): number {
    return delayMs * (0.5 + this.#around.port.random.fraction());
  }

  /** Whoever gives up is not kept waiting by what is asked for the sake of all. */
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
      const timer = this.#around.port.timers.after(delayMs, resume, true);
      this.#onPauseEnd = () => {
        timer.cancel();
        resume();
      };
    });
  }
}
