/**
 * One acquisition in the queues of the nodes. After a release, each node independently wakes the
 * first waiter of its queue. The acquisition asks for votes again when a majority has woken it. If
 * fewer have, it gives the other nodes a moment and then looks at the lock. Without any message it
 * looks when the holder's lease ends, and at random, growing intervals. Nothing here decides which
 * owner is granted.
 */
import type { Busy, HolderView } from "../../contract/store.js";
import { guarded, Unreadable } from "../../events/foreign-data.js";
import { majorityOf, Tally } from "../../rules/majority.js";
import { jittered } from "../../time/backoff.js";
import type { Timer } from "../../time/timers.js";
import type { OwnConnection } from "../redis-client/client.js";
import { Subscription } from "../redis-client/subscription.js";
import { type Answers, aheadOf, busyBy, dueInMs, judgeLook } from "./answers.js";
import type { Grants } from "./grants.js";
import { decodeLookReply, type LookReply } from "./protocol.js";
import type { Poll, Quorum } from "./quorum.js";

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
  #look: Poll<LookReply, "open" | "held" | "silent"> | null = null;
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
   * Called before the first request that may queue the waiter. The order is by ballots, not by wall
   * clocks, by which a client whose clock is behind would always come first: a ballot is above all
   * ballots that were seen for this name.
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
   * Leaves the queues. If it leaves without the lock, the nodes wake the next waiter. A node that
   * misses the request wakes this waiter once in vain.
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
      const result = await look.judged;
      this.#look = null;
      if (this.#isEnded || result === "open" || this.#isWoken) break;
      this.#woken.clear();
      this.answers = look.answers;
      if (result === "silent") return "silent";
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

  #ask(): Poll<LookReply, "open" | "held" | "silent"> {
    this.enter();
    return this.#quorum.ask<LookReply, "open" | "held" | "silent">({
      keys: this.#keys,
      args: ["wait", this.member, this.since],
      limitMs: this.#rules.limitMs,
      decode: (raw) => decodeLookReply(raw, 0),
      judge: judgeLook,
    });
  }
}

interface LeaveAnswer {
  readonly type: "left";
}

/** A waiter of this client, as the messages of the nodes reach it. */
export interface Sleeper {
  /** A node says that this waiter is next. */
  onWake(at: number): void;
  /** The waiter before this one was woken: look, in case it does not come. */
  onStandby(): void;
  /** A node may have dropped this waiter from its queue. */
  onForgotten(): void;
}

/** The messages of the nodes to this client: one channel, of the same name on every node. */
export class WakeUps {
  readonly channel: string;
  readonly #quorum: Quorum;
  readonly #grants: Grants;
  readonly #sleepers = new Map<string, Sleeper>();
  #subscriptions: readonly Subscription[] = [];
  #added = 0;
  /** How often a subscription came up. Messages from before that are lost. */
  ups = 0;

  constructor(quorum: Quorum, grants: Grants) {
    this.channel = `holdfast@${quorum.runtime.random.id()}`;
    this.#quorum = quorum;
    this.#grants = grants;
  }

  /** Subscribes in the background. Until that is done, waiters rely on their looks. */
  listen(): void {
    if (this.#subscriptions.length > 0) return;
    this.#subscriptions = this.#quorum.nodes.map(({ driver }, at) => {
      const subscription = new Subscription(driver, this.#quorum.runtime, {
        channel: this.channel,
        onMessage: guarded("redlock", "a message to this client", (message: string) => {
          this.#onMessage(at, message);
        }),
        onUp: () => {
          this.ups += 1;
          this.#wakeAll();
          this.#grants.lookAfterAll(at);
        },
        // A single server has no marker that names a process.
        ...(!this.#quorum.isSingleServer && {
          prepare: (connection: OwnConnection) => this.#proveSameProcess(connection),
        }),
      });
      subscription.start();
      return subscription;
    });
  }

  /** Returns the name of the waiter in this channel. */
  add(sleeper: Sleeper): string {
    this.#added += 1;
    const id = this.#added.toString(36);
    this.#sleepers.set(id, sleeper);
    return id;
  }

  remove(id: string): void {
    this.#sleepers.delete(id);
  }

  close(): void {
    for (const subscription of this.#subscriptions) subscription.close();
  }

  /**
   * Lets a node check without INFO that it is still the server process named by its marker. This
   * client subscribes to a channel with the run id that the process reported on this connection.
   * The connection never reconnects, so the subscription ends with the process. A process that was
   * restarted from a snapshot, or that receives a repeated request, has no subscriber on this
   * channel. So while the channel with the marker's run id has a subscriber, of any client, the
   * node is that process. Without a subscriber the node runs INFO for every vote.
   */
  async #proveSameProcess(connection: OwnConnection): Promise<void> {
    const text = await connection.send(["INFO", "server"]);
    const [, run] = /^run_id:(\w+)/m.exec(String(text)) ?? [];
    if (run) await connection.subscribe(`holdfast@/${run}`, () => {});
  }

  #wakeAll(): void {
    for (const sleeper of [...this.#sleepers.values()]) sleeper.onForgotten();
  }

  #onMessage(at: number, message: string): void {
    const [, kind, text = ""] = /^([wsex]) (.*)$/s.exec(message) ?? [];
    if (kind === undefined) throw new Unreadable("a message of a node");
    if (kind === "x") {
      const [, owner, token = "", reason = ""] = /^(\S+) (\d{1,20}) (.*)$/s.exec(text) ?? [];
      if (owner === undefined) throw new Unreadable("a revocation");
      return this.#grants.onRevoked(at, owner, token, reason);
    }
    if (kind === "e" && text === "") return this.#wakeAll();
    const sleeper = this.#sleepers.get(text);
    if (kind === "w") sleeper?.onWake(at);
    if (kind === "s") sleeper?.onStandby();
    if (kind === "e") sleeper?.onForgotten();
  }
}
