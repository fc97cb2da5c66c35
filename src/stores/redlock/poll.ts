import type { StoreError } from "../../errors.js";
import { foreignData, reportForeign } from "../../foreign-data.js";
import type { Port } from "../../time/port.js";
import type { Timer } from "../../time/timers.js";
import { type RedlockNode, requestOf } from "./redlock-node.js";
import { decodeAside, decodeForeign, type Failure } from "./vote.js";

export interface PollRequest<Answer, Judgement> {
  readonly nodes: readonly RedlockNode[];
  readonly keys: readonly string[];
  readonly args: readonly string[];
  /** How long a node may take before it counts as silent. */
  readonly limitMs: number;
  decode(raw: unknown): Answer;
  /** What the answers amount to; null while more are needed. Not null when there are no more. */
  judge(answers: readonly (Answer | Failure | undefined)[]): Judgement | null;
  /** Every answer, also one that comes when the judgement is made (`isLate`). */
  onAnswer?(answer: Answer | Failure, at: number, isLate: boolean): void;
}

/** A timer that takes this many times as long was kept from firing. */
const LATE_PART = 1.25;
export const MOST_EXTENSIONS = 2;

/**
 * One question to all nodes at the same time, and what their answers amount to, as soon as it is
 * certain: a node that hangs costs nothing where the others suffice, and one time-out where not.
 */
export class Poll<Answer, Judgement> {
  /** By the local clock, just before the first request was sent. */
  readonly sentMs: number;
  readonly answers: (Answer | Failure | undefined)[];
  /** Null when it was cut short. */
  readonly judged: Promise<Judgement | null>;
  readonly #request: PollRequest<Answer, Judgement>;
  #timer: Timer | undefined;
  #isOver = false;
  #resolve: (judgement: Judgement | null) => void = () => {};

  constructor(port: Port, request: PollRequest<Answer, Judgement>) {
    this.#request = request;
    const { nodes, keys, args, limitMs } = request;
    this.answers = new Array(nodes.length).fill(undefined);
    this.judged = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    this.sentMs = port.clock.nowMs();
    const text = requestOf(keys, args);
    for (let at = 0; at < nodes.length; at += 1) {
      nodes[at]?.send(
        text,
        (raw) => this.#take(at, raw),
        (error) => this.#put(at, { type: "error", error }),
      );
    }
    if (!this.#isOver) this.#await(port, this.sentMs, limitMs);
  }

  /** Nobody wants to know any more. */
  cut(): void {
    this.#end(null);
  }

  /**
   * A timer that comes late tells of an event loop that was blocked: answers may have arrived, and
   * are read before anybody counts as silent.
   */
  #await(port: Port, startMs: number, limitMs: number, extensions = 0): void {
    const onDue = (): void => {
      const nowMs = port.clock.nowMs();
      const isLate = nowMs - startMs > limitMs * LATE_PART;
      if (isLate && extensions < MOST_EXTENSIONS) {
        return this.#await(port, nowMs, limitMs, extensions + 1);
      }
      this.#timer = port.timers.after(0, () => this.#onTimeOut(), true);
    };
    this.#timer = port.timers.after(limitMs, onDue, true);
  }

  #take(at: number, raw: unknown): void {
    let answer: Answer | Failure;
    try {
      const foreign = decodeForeign(raw) ?? decodeAside(raw);
      if (foreign) this.#report(at, `"${foreign.key}", a ${foreign.holds}`);
      answer = this.#request.decode(raw);
    } catch (error) {
      const where = `the reply to ${this.#request.args[0]}`;
      answer = { type: "error", error: this.#report(at, where, error) };
    }
    this.#put(at, answer);
  }

  /** Where the other nodes suffice, the caller does not hear of it. */
  #report(at: number, what: string, cause?: unknown): StoreError {
    const error = foreignData(what, cause);
    reportForeign("redlock", `${what} (node ${this.#request.nodes[at]?.name})`, error);
    return error;
  }

  #put(at: number, answer: Answer | Failure): void {
    const isLate = this.#isOver;
    if (!isLate || this.answers[at] === undefined) this.answers[at] = answer;
    this.#request.onAnswer?.(answer, at, isLate);
    if (!isLate) this.#judge();
  }

  #judge(): void {
    const judgement = this.#request.judge(this.answers);
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
