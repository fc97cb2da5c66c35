/**
 * How one acquisition waits for its turn. A release wakes the first of those who wait, on every
 * node by itself; so it asks again when a majority has woken it, or when the others were given a
 * moment to. Should no message come, it looks by itself: when the holder's time is over, and in
 * ever longer, random intervals. Nothing here decides who is granted.
 */
import type { Busy, Claim, HolderView } from "../../store.js";
import type { Timer } from "../../time/timers.js";
import { type Answers, aheadOf, busyBy, dueInMs } from "./answers.js";
import { majorityOf } from "./ballot.js";
import { Poll } from "./poll.js";
import type { Surroundings } from "./surroundings.js";
import { decodeSight, type Failure, type Sight } from "./vote.js";
import type { Sleeper } from "./wake-ups.js";

/** The nodes that were not first to wake us get this long to follow. */
const GATHER_MS = 5;
const FIRST_LOOK_MS = 200;
const LONGEST_LOOK_MS = 1_000;
/** Those behind others look less often, and later when the holder's time is over. */
const LONGEST_REAR_LOOK_MS = 5_000;
const STAGGER_MS = 5;
const FORGOTTEN_MS = 100;

export class Waiting implements Sleeper {
  /** The same at all nodes, so that they agree on who is first: the first ballot. */
  since = "";
  readonly id: string;
  readonly member: string;
  readonly #keys: readonly string[];
  readonly #around: Surroundings;
  readonly #limitMs: number;
  readonly #woken = new Set<number>();
  /** The nodes where it may be entered. */
  readonly #entered = new Set<number>();
  #look: Poll<Sight, "open" | "held" | "silent"> | null = null;
  #timer: Timer | undefined;
  #wake: (reason: "woken" | "due" | "look" | "ended") => void = () => {};
  #isEnded = false;
  #isLeft = false;
  /** A node may know nothing of us any more: it was out of hearing, or did not hear of us. */
  #isForgotten = false;
  #looks = 0;
  /** Who was in the way when it was last seen. */
  busy: Busy | null = null;
  /** Of the last look. */
  answers: Answers = [];

  constructor(claim: Claim, keys: readonly string[], around: Surroundings) {
    const { wakeUps } = around;
    this.#keys = keys;
    this.#around = around;
    this.id = wakeUps.add(this);
    this.#limitMs = around.limitMs(claim.ttlMs, 0);
    this.member = `${wakeUps.channel}/${this.id}`;
  }

  /**
   * Before it is entered anywhere. Whoever's clock is behind would always be first, but a ballot is
   * above what was seen of the name.
   */
  begin(ballot: number): void {
    if (this.since === "") this.since = `${ballot}`;
  }

  get isEntered(): boolean {
    return this.#entered.size > 0;
  }

  /** From now on any node may know of it. */
  enter(): string {
    for (const at of this.#around.nodes.keys()) this.#entered.add(at);
    return this.member;
  }

  /** A node that refuses enters it. */
  onVote(vote: Answers[number], at: number): void {
    if (vote?.type !== "held" && vote?.type !== "reserved") return;
    if (this.#isLeft) this.#around.nodes[at]?.ask(this.#keys, this.#leaving(0)).catch(() => {});
    else this.#entered.add(at);
  }

  end(): void {
    this.#isEnded = true;
    this.#look?.cut();
    this.#wake("ended");
  }

  /**
   * It waits no more. Whoever leaves without the lock passes a wake-up on. Should a node miss it,
   * its next wake-up is for nothing, once.
   */
  async leave(isHolder: boolean): Promise<void> {
    const { wakeUps, nodes, port } = this.#around;
    wakeUps.remove(this.id);
    this.#timer?.cancel();
    this.#isLeft = true;
    if (!this.isEntered) return;
    const poll = new Poll<number, true>(port, {
      nodes: nodes.filter((_, at) => this.#entered.has(at)),
      keys: this.#keys,
      args: this.#leaving(isHolder ? 0 : this.#around.reserveMs),
      limitMs: this.#limitMs,
      decode: Number,
      judge: (answers) => (answers.includes(undefined) ? null : true),
    });
    await poll.judged;
  }

  /** Resolves when it is worth asking for votes again, or that too few nodes answered. */
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
      const isWoken = this.#woken.size >= majorityOf(look.answers.length);
      if (this.#isEnded || sight === "open" || isWoken) break;
      this.#woken.clear();
      this.answers = look.answers;
      if (sight === "silent") return "silent";
      answers = look.answers;
      this.busy = busyBy(answers, this.#around.port.clock.wallUs() / 1000);
      if (this.busy.mark) break;
      onSeen(this.busy.holder, aheadOf(answers));
    }
    this.#woken.clear();
    return "go";
  }

  #leaving(reserveMs: number): string[] {
    return ["leave", this.member, `${reserveMs}`];
  }

  onForgotten(): void {
    this.#isForgotten = true;
    // It may be one of many here: they do not all look at once.
    const delayMs = FORGOTTEN_MS * this.#around.port.random.fraction();
    this.#around.port.timers.after(delayMs, () => this.#wake("look"));
  }

  onStandby(): void {
    if (this.#woken.size > 0) return;
    const delayMs = this.#around.reserveMs * (1 + this.#around.port.random.fraction() / 4);
    this.#timer?.cancel();
    this.#timer = this.#around.port.timers.after(delayMs, () => this.#wake("look"), true);
  }

  onWake(at: number): void {
    this.#woken.add(at);
    const { port, nodes } = this.#around;
    if (this.#woken.size >= majorityOf(nodes.length)) return this.#wake("woken");
    if (this.#woken.size > 1) return;
    this.#timer?.cancel();
    this.#timer = port.timers.after(GATHER_MS, () => this.#wake("look"), true);
  }

  #rest(answers: Answers): Promise<"woken" | "due" | "look" | "ended"> {
    const { port, nodes } = this.#around;
    if (this.#woken.size >= majorityOf(nodes.length)) return Promise.resolve("woken");
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
      // One may be set already: by a word that came while nobody rested.
      this.#timer?.cancel();
      this.#timer = port.timers.after(delayMs, () => this.#wake(reason), true);
    });
  }

  #lookMs(ahead: number): number {
    const frontMs = Math.min(FIRST_LOOK_MS * 2 ** this.#looks, LONGEST_LOOK_MS);
    this.#looks += 1;
    const delayMs = Math.min(frontMs * (1 + ahead), LONGEST_REAR_LOOK_MS);
    return delayMs * (0.5 + this.#around.port.random.fraction() / 2);
  }

  #ask(): Poll<Sight, "open" | "held" | "silent"> {
    const { port, nodes } = this.#around;
    return new Poll(port, {
      nodes,
      keys: this.#keys,
      args: ["wait", this.enter(), this.since],
      limitMs: this.#limitMs,
      decode: (raw) => decodeSight(raw, 0),
      judge: judgeSight,
    });
  }
}

function judgeSight(
  answers: readonly (Sight | Failure | undefined)[],
): "open" | "held" | "silent" | null {
  const majority = majorityOf(answers.length);
  let [open, closed, pending] = [0, 0, 0];
  for (const answer of answers) {
    if (answer === undefined) pending += 1;
    else if (answer.type === "open") open += 1;
    else if (answer.type === "held" || answer.type === "reserved") closed += 1;
  }
  if (open >= majority) return "open";
  if (closed > answers.length - majority) return "held";
  if (pending > 0) return null;
  return open + closed >= majority ? "held" : "silent";
}
