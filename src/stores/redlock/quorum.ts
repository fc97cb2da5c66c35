import type { StoreError } from "../../errors/index.js";
import { foreignData, reportForeign } from "../../events/foreign-data.js";
import type { Runtime } from "../../time/runtime.js";
import type { Timer } from "../../time/timers.js";
import { checkVersion, type Driver, sha1 } from "../redis-client/client.js";
import { slotOf } from "../redis-client/cluster-slot.js";
import { isNoScript } from "../redis-client/errors.js";
import { nodeError } from "./errors.js";
import { decodeAside, decodeForeign, type Failure } from "./protocol.js";
import { NODE, RELEASE, VOTE } from "./script.generated.js";

/** One text of Lua, and the hash by which a server knows it. */
interface NodeScript {
  readonly text: string;
  readonly sha: string;
}

/** The scripts of a node: one for each of the two frequent verbs, one for all others. */
interface NodeScripts {
  readonly vote: NodeScript;
  readonly release: NodeScript;
  readonly others: NodeScript;
}

function scripts(isSingleServer: boolean, isSpread: boolean): NodeScripts {
  const script = (lua: string): NodeScript => {
    const text = `local IS_SINGLE_SERVER, IS_SPREAD = ${isSingleServer}, ${isSpread}\n${lua}`;
    return { text, sha: sha1(text) };
  };
  return { vote: script(VOTE), release: script(RELEASE), others: script(NODE) };
}

/** A node of several; a server that decides alone; and a Cluster that does. */
export const NODE_SCRIPTS: Readonly<Record<"node" | "single" | "spread", NodeScripts>> = {
  node: scripts(false, false),
  single: scripts(true, false),
  spread: scripts(true, true),
};

/** A verb with its arguments, ready for any node of a store. */
export interface NodeCall {
  readonly keys: readonly string[];
  /** The verb comes first. */
  readonly args: readonly string[];
  readonly script: NodeScript;
  /** The arguments of EVALSHA. */
  readonly line: readonly string[];
}

export function nodeCall(
  { vote, release, others }: NodeScripts,
  keys: readonly string[],
  args: readonly string[],
): NodeCall {
  const [verb, ...rest] = args;
  const script = verb === "vote" ? vote : verb === "release" ? release : others;
  const given = script === others ? args : rest;
  return { keys, args, script, line: [script.sha, `${keys.length}`, ...keys, ...given] };
}

/**
 * A client may keep requests while its server is unreachable. More than this many would only flood
 * the server with outdated requests when it returns.
 */
const MAX_UNANSWERED = 10_000;

/** One of the independent servers. */
export class RedlockNode {
  readonly name: string;
  readonly driver: Driver;
  readonly scripts: NodeScripts;
  #unanswered = 0;

  constructor(name: string, driver: Driver, nodeScripts: NodeScripts = NODE_SCRIPTS.node) {
    this.name = name;
    this.driver = driver;
    this.scripts = nodeScripts;
  }

  /** Publishes foreign data in a reply: a caller whose majority holds hears of it no other way. */
  reportForeign(what: string, cause?: unknown): StoreError {
    const error = foreignData(what, cause);
    reportForeign("redlock", `${what} (node ${this.name})`, error);
    return error;
  }

  /** Runs a verb of the script; sent before it returns. Rejects with a `StoreError`. */
  ask(keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const onAnswer = (_at: number, _node: RedlockNode, raw: unknown): void => resolve(raw);
      const onError = (_at: number, error: StoreError): void => reject(error);
      this.send(nodeCall(this.scripts, keys, args), 0, { onAnswer, onError });
    });
  }

  /** Sends a call that goes to many nodes; `at` tells the recipient which of them this one is. */
  send(call: NodeCall, at: number, recipient: Recipient): void {
    if (this.#unanswered >= MAX_UNANSWERED) {
      const full = `${MAX_UNANSWERED} requests before it are unanswered`;
      return recipient.onError(at, nodeError(this.name, full));
    }
    this.#unanswered += 1;
    const { driver } = this;
    const { keys, script, line } = call;
    const [key = ""] = keys;
    driver.send(key, "evalsha", line).then(
      (raw) => {
        this.#unanswered -= 1;
        recipient.onAnswer(at, this, raw);
      },
      (error: unknown) => {
        this.#unanswered -= 1;
        if (!isNoScript(error)) return recipient.onError(at, nodeError(this.name, error));
        checkVersion(driver, key, "redlock")
          .then(() => driver.send(key, "eval", [script.text, ...line.slice(1)]))
          .then(
            (raw) => recipient.onAnswer(at, this, raw),
            (cause: unknown) => recipient.onError(at, nodeError(this.name, cause)),
          );
      },
    );
  }
}

/** Gets the answers of many nodes to one call. */
export interface Recipient {
  onAnswer(at: number, node: RedlockNode, raw: unknown): void;
  onError(at: number, error: StoreError): void;
}

/** A node may take at most this part of the ttl, so that a round leaves most of the lease. */
const LIMIT_PART = 5;
const MAX_LIMIT_MS = 1_000;
/** A woken waiter has this many timeouts to ask for votes, also on a busy machine. */
const RESERVE_TIMEOUTS = 4;

/** The nodes that decide together, and how long each of them may take to answer. */
export class Quorum {
  readonly nodes: readonly RedlockNode[];
  readonly runtime: Runtime;
  /** The names of all nodes: clients that name other nodes must not share a node with this one. */
  readonly set: string;
  /** Stands for `set` where it is only compared. A single server gets its start delay instead. */
  readonly setId: string;
  readonly nodeTimeoutMs: number;
  /** How far the clocks of nodes and clients may drift apart, as a part of the ttl. */
  readonly driftFactor: number;
  /** A single server grants no lock for this long after its start. */
  readonly startDelayMs: number;
  /** How long a node is reserved for the waiter that it woke. */
  readonly reserveMs: number;

  constructor(
    nodes: readonly RedlockNode[],
    { nodeTimeoutMs, driftFactor }: Pick<Quorum, "nodeTimeoutMs" | "driftFactor">,
    runtime: Runtime,
    startDelayMs = 0,
  ) {
    this.nodes = nodes;
    this.runtime = runtime;
    this.driftFactor = driftFactor;
    this.set = nodes
      .map(({ name }) => name)
      .sort()
      .join(",");
    this.setId = this.isSingleServer ? startDelayText(startDelayMs) : setIdOf(this.set);
    this.nodeTimeoutMs = nodeTimeoutMs;
    this.startDelayMs = startDelayMs;
    this.reserveMs = Math.ceil(RESERVE_TIMEOUTS * nodeTimeoutMs);
  }

  /** One server, or one Cluster, decides alone: no other node remembers what it forgot. */
  get isSingleServer(): boolean {
    return this.nodes.length === 1;
  }

  /** One call carries only locks of the same shard: in a Cluster a shard is a slot. */
  shardOf([, lock = ""]: readonly string[]): number {
    const { isCluster = false, keyPrefix = "" } = this.nodes[0]?.driver ?? {};
    return isCluster ? slotOf(keyPrefix + lock) : 0;
  }

  /** How long a node may take, for a lease of this length, after this many silent rounds. */
  limitMs(ttlMs: number, failures: number): number {
    // After a silent round, a longer limit helps more than the same limit again.
    const patienceMs = this.nodeTimeoutMs * 2 ** failures;
    return Math.min(patienceMs, ttlMs / LIMIT_PART, MAX_LIMIT_MS);
  }

  /** Sends one question to all nodes, or to those that the question names. */
  ask<Answer, Judgement>(question: Question<Answer, Judgement>): Poll<Answer, Judgement> {
    const poll = new Poll(this.runtime, question, question.nodes ?? this.nodes);
    poll.send();
    return poll;
  }
}

export function setIdOf(set: string): string {
  return sha1(set).slice(0, 16);
}

/** For how many ms after its start a single server grants no lock. */
export function startDelayText(startDelayMs: number): string {
  return `${Math.ceil(startDelayMs)}`.padStart(16, "0");
}

export interface Question<Answer, Judgement> {
  /** Default: all. */
  readonly nodes?: readonly RedlockNode[];
  readonly keys: readonly string[];
  readonly args: readonly string[];
  /** How long a node may take before it counts as silent. */
  readonly limitMs: number;
  decode(raw: unknown, node: RedlockNode, at: number): Answer;
  /**
   * The result of the answers; null while it is open. Not null when all nodes have answered.
   * `sentMs` is the local time just before the first request of this question was sent.
   */
  judge(answers: readonly (Answer | Failure | undefined)[], sentMs: number): Judgement | null;
  /** Called for every answer, also for one that comes after the judgement (`isLate`). */
  onAnswer?(answer: Answer | Failure, at: number, isLate: boolean): void;
}

/** If a timer takes this many times as long, the event loop was blocked. */
const LATE_PART = 1.25;
export const MAX_EXTENSIONS = 2;

/**
 * One question to several nodes at the same time. It is judged as soon as the result is certain: a
 * node that hangs costs nothing if the other nodes suffice, and one timeout if they do not.
 */
export class Poll<Answer, Judgement> implements Recipient {
  readonly answers: (Answer | Failure | undefined)[];
  /** Null when it was cut short. */
  readonly judged: Promise<Judgement | null>;
  readonly #runtime: Runtime;
  readonly #question: Question<Answer, Judgement>;
  readonly #nodes: readonly RedlockNode[];
  #sentMs = 0;
  #timer: Timer | undefined;
  #isOver = false;
  #resolve: (judgement: Judgement | null) => void = () => {};

  constructor(
    runtime: Runtime,
    question: Question<Answer, Judgement>,
    nodes: readonly RedlockNode[],
  ) {
    this.#runtime = runtime;
    this.#question = question;
    this.#nodes = nodes;
    this.answers = new Array(nodes.length).fill(undefined);
    this.judged = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  /** By the local clock, just before the first request was sent. */
  get sentMs(): number {
    return this.#sentMs;
  }

  send(): void {
    const { keys, args, limitMs } = this.#question;
    // All nodes have the same scripts.
    const call = nodeCall(this.#nodes[0]?.scripts ?? NODE_SCRIPTS.node, keys, args);
    this.#sentMs = this.#runtime.clock.nowMs();
    for (const [at, node] of this.#nodes.entries()) node.send(call, at, this);
    if (!this.#isOver) this.#await(this.#sentMs, limitMs);
  }

  /** Called when nobody waits for the result any more. */
  cut(): void {
    this.#end(null);
  }

  onAnswer(at: number, node: RedlockNode, raw: unknown): void {
    let answer: Answer | Failure;
    try {
      const foreign = decodeForeign(raw) ?? decodeAside(raw);
      if (foreign) node.reportForeign(`"${foreign.key}", a ${foreign.holds}`);
      answer = this.#question.decode(raw, node, at);
    } catch (cause) {
      const where = `the reply to ${this.#question.args[0]}`;
      answer = { type: "error", error: node.reportForeign(where, cause) };
    }
    this.#put(at, answer);
  }

  onError(at: number, error: Error): void {
    this.#put(at, { type: "error", error });
  }

  /**
   * If a timer fires late, the event loop was blocked. Answers may have arrived meanwhile, so they
   * are read before a node counts as silent.
   */
  #await(startMs: number, limitMs: number, extensions = 0): void {
    const { clock, timers } = this.#runtime;
    const onDue = (): void => {
      const nowMs = clock.nowMs();
      const isLate = nowMs - startMs > limitMs * LATE_PART;
      if (isLate && extensions < MAX_EXTENSIONS) {
        return this.#await(nowMs, limitMs, extensions + 1);
      }
      this.#timer = timers.after(0, () => this.#onTimeOut(), true);
    };
    this.#timer = timers.after(limitMs, onDue, true);
  }

  #put(at: number, answer: Answer | Failure): void {
    const isLate = this.#isOver;
    if (!isLate || this.answers[at] === undefined) this.answers[at] = answer;
    this.#question.onAnswer?.(answer, at, isLate);
    if (!isLate) this.#judge();
  }

  #judge(): void {
    const judgement = this.#question.judge(this.answers, this.#sentMs);
    if (judgement !== null) this.#end(judgement);
  }

  #onTimeOut(): void {
    for (const [at, answer] of this.answers.entries()) {
      if (answer === undefined) this.answers[at] = { type: "time_out" };
    }
    this.#judge();
  }

  #end(judgement: Judgement | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#timer?.cancel();
    this.#resolve(judgement);
  }
}
