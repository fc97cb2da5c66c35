/**
 * One acquisition in the queues of the nodes. Every node by itself wakes the first waiter of its
 * queue after a release. The acquisition asks for votes again when a majority has woken it; when
 * fewer have, it gives the other nodes a moment, and looks. Without any message it looks when the
 * lease of the holder is over, and in ever longer, random intervals. Nothing here decides which
 * owner is granted.
 */
import type { Busy, HolderView } from "../../contract/store.js";
import { jittered } from "../../time/backoff.js";
import type { Timer } from "../../time/timers.js";
import { type Answers, aheadOf, busyBy, dueInMs, judgeSight } from "./answers.js";
import { decodeSight, type Sight } from "./codec.js";
import type { Poll, Quorum } from "./quorum.js";
import { majorityOf, Tally } from "./tally.js";
import type { Sleeper, WakeUps } from "./wake-ups.js";

/** After the first wake-up, the other nodes get this long to send theirs. */
const GATHER_MS = 5;
const FIRST_LOOK_MS = 200;
export const MAX_LOOK_MS = 1_000;
/** Waiters further back look less often, and later after the end of the holder's lease. */
const MAX_REAR_LOOK_MS = 5_000;
const STAGGER_MS = 5;
const FORGOTTEN_MS = 100;

export interface WaiterRules {
  /** How long a node may take to answer. */
  readonly limitMs: number;
  /** A waiter looks at the lock at least this often. */
  readonly pollMs: number;
}

export class Waiter implements Sleeper {
  /** The first ballot. All nodes get the same number, so that they agree on the order. */
  since = "";
  readonly id: string;
  readonly member: string;
  readonly #keys: readonly string[];
  readonly #quorum: Quorum;
  readonly #wakeUps: WakeUps;
  readonly #rules: WaiterRules;
  readonly #woken = new Set<number>();
  /** The nodes whose queues may have this waiter. */
  readonly #entered = new Set<number>();
  #look: Poll<Sight, "open" | "held" | "silent"> | null = null;
  #timer: Timer | undefined;
  #wake: (reason: "woken" | "due" | "look" | "ended") => void = () => {};
  #isEnded = false;
  #isLeft = false;
  /** A node may have dropped this waiter from its queue, or its messages may be lost. */
  #isForgotten = false;
  #looks = 0;
  /** The holder or mark at the last look. */
  busy: Busy | null = null;
  /** Of the last look. */
  answers: Answers = [];

  constructor(keys: readonly string[], quorum: Quorum, wakeUps: WakeUps, rules: WaiterRules) {
    this.#keys = keys;
    this.#quorum = quorum;
    this.#wakeUps = wakeUps;
    this.#rules = rules;
    this.id = wakeUps.add(this);
    this.member = `${wakeUps.channel}/${this.id}`;
  }

  /**
   * Called before the first request that may enter the waiter. By wall clocks, a client whose clock
   * is behind would always come first; a ballot is also above all ballots seen of the name.
   */
  begin(ballot: number): void {
    if (this.since === "") this.since = `${ballot}`;
  }

  get isEntered(): boolean {
    return this.#entered.size > 0;
  }

  /** From now on the queue of any node may have this waiter. */
  enter(): void {
    for (const at of this.#quorum.nodes.keys()) this.#entered.add(at);
  }

  /** A node that refuses a vote enters the waiter. */
  onVote(vote: Answers[number], at: number): void {
    if (vote?.type !== "held" && vote?.type !== "reserved") return;
    if (this.#isLeft) this.#quorum.nodes[at]?.ask(this.#keys, this.#leaving(0)).catch(() => {});
    else this.#entered.add(at);
  }

  end(): void {
    this.#isEnded = true;
    this.#look?.cut();
    this.#wake("ended");
  }

  /**
   * Leaves the queues. A waiter that leaves without the lock passes its wake-up on to the next one.
   * A node that misses the request wakes this waiter once for nothing.
   */
  async leave(isHolder: boolean): Promise<void> {
    this.#wakeUps.remove(this.id);
    this.#timer?.cancel();
    this.#isLeft = true;
    if (!this.isEntered) return;
    const { nodes, reserveMs } = this.#quorum;
    const poll = this.#quorum.ask<LeaveAnswer, true>({
      nodes: nodes.filter((_, at) => this.#entered.has(at)),
      keys: this.#keys,
      args: this.#leaving(isHolder ? 0 : reserveMs),
      limitMs: this.#rules.limitMs,
      decode: () => ({ type: "left" }),
      judge: (answers) => (new Tally(answers).isOpen ? null : true),
    });
    await poll.judged;
  }

  /** Resolves when it is worth asking for votes again, or when too few nodes answered. */
  async turn(
    refusals: Answers,
    busy: Busy,
    onSeen: (holder: HolderView | null, ahead: number) => void,
  ): Promise<"go" | "silent"> {
    this.busy = busy;
    let answers: Answers = refusals;
    while (!this.#isEnded) {
      const reason = await this.#rest(answers);
      if (reason !== "look") break;
      this.#isForgotten = false;
      const look = this.#ask();
      this.#look = look;
      const sight = await look.judged;
      this.#look = null;
      if (this.#isEnded || sight === "open" || this.#isWoken) break;
      this.#woken.clear();
      this.answers = look.answers;
      if (sight === "silent") return "silent";
      answers = look.answers;
      this.busy = busyBy(answers, this.#quorum.runtime.clock.wallUs() / 1000);
      if (this.busy.mark) break;
      onSeen(this.busy.holder, aheadOf(answers));
    }
    this.#woken.clear();
    return "go";
  }

  get #isWoken(): boolean {
    return this.#woken.size >= majorityOf(this.#quorum.nodes.length);
  }

  #leaving(reserveMs: number): string[] {
    return ["leave", this.member, `${reserveMs}`];
  }

  onForgotten(): void {
    this.#isForgotten = true;
    // A process may have many waiters, which must not all look at once.
    const { random, timers } = this.#quorum.runtime;
    const delayMs = FORGOTTEN_MS * random.fraction();
    timers.after(delayMs, () => this.#wake("look"));
  }

  onStandby(): void {
    if (this.#woken.size > 0) return;
    const { runtime, reserveMs } = this.#quorum;
    const delayMs = reserveMs * (1 + runtime.random.fraction() / 4);
    this.#timer?.cancel();
    this.#timer = runtime.timers.after(delayMs, () => this.#wake("look"), true);
  }

  onWake(at: number): void {
    this.#woken.add(at);
    if (this.#isWoken) return this.#wake("woken");
    if (this.#woken.size > 1) return;
    this.#timer?.cancel();
    this.#timer = this.#quorum.runtime.timers.after(GATHER_MS, () => this.#wake("look"), true);
  }

  #rest(answers: Answers): Promise<"woken" | "due" | "look" | "ended"> {
    if (this.#isWoken) return Promise.resolve("woken");
    if (this.#isForgotten) return Promise.resolve("look");
    return new Promise((resolve) => {
      this.#wake = (reason) => {
        this.#timer?.cancel();
        this.#wake = () => {};
        resolve(reason);
      };
      const ahead = aheadOf(answers);
      const lookMs = this.#lookMs(ahead);
      const dueMs = dueInMs(answers) + 1 + STAGGER_MS * ahead;
      const isDue = dueMs <= lookMs;
      const isGathering = this.#woken.size > 0;
      const delayMs = isGathering ? GATHER_MS : isDue ? dueMs : lookMs;
      const reason = isDue && !isGathering ? "due" : "look";
      // A message that came during a look may have set a timer.
      this.#timer?.cancel();
      this.#timer = this.#quorum.runtime.timers.after(delayMs, () => this.#wake(reason), true);
    });
  }

  #lookMs(ahead: number): number {
    const frontMs = Math.min(FIRST_LOOK_MS * 2 ** this.#looks, MAX_LOOK_MS);
    this.#looks += 1;
    const ownMs = Math.min(frontMs * (1 + ahead), MAX_REAR_LOOK_MS);
    const delayMs = Math.min(ownMs, this.#rules.pollMs);
    return jittered(delayMs, this.#quorum.runtime.random);
  }

  #ask(): Poll<Sight, "open" | "held" | "silent"> {
    this.enter();
    return this.#quorum.ask<Sight, "open" | "held" | "silent">({
      keys: this.#keys,
      args: ["wait", this.member, this.since],
      limitMs: this.#rules.limitMs,
      decode: (raw) => decodeSight(raw, 0),
      judge: judgeSight,
    });
  }
}

interface LeaveAnswer {
  readonly type: "left";
}
