/** Tells the nodes what they need to know before they vote; see admission.ts for the rules. */
import { InvalidOptionError } from "../../errors.js";
import { list, text, whole } from "../../foreign-data.js";
import type { Port } from "../../time/port.js";
import {
  type AdmissionRules,
  admit,
  type Instruction,
  type Marker,
  type Survey,
} from "./admission.js";
import { majorityOf } from "./ballot.js";
import { Poll } from "./poll.js";
import type { RedlockNode } from "./redlock-node.js";
import type { Failure } from "./vote.js";

/** In the background, nodes that cannot be let in yet are looked at no more often. */
const LEAST_INTERVAL_MS = 500;

/** Clocks of nodes and of this client may run apart by a fifth: so much of a time is certain. */
const TRUSTED_PART = 0.75;

export interface MembershipRules extends Omit<AdmissionRules, "restMs"> {
  /** For how long a node knows of longer leases, once it was told of them. */
  readonly announceMs: number;
}

export class Membership {
  readonly #port: Port;
  readonly #nodes: readonly RedlockNode[];
  readonly #keys: readonly string[];
  readonly #rules: MembershipRules;
  readonly #limitMs: number;
  #admitting: Promise<void> | null = null;
  #lastMs = Number.NEGATIVE_INFINITY;
  /** What a majority knows of: leases of this length, until then by this client's clock. */
  #announced = { ttlMs: 0, untilMs: 0 };
  /** When every lease that is longer than `maxTtlMs` and that this client announced is over. */
  #overMs = 0;
  #bootstrap: AdmissionRules["bootstrap"];

  constructor(
    port: Port,
    nodes: readonly RedlockNode[],
    keys: readonly string[],
    rules: MembershipRules,
    limitMs: number,
  ) {
    this.#port = port;
    this.#nodes = nodes;
    this.#keys = keys;
    this.#rules = rules;
    this.#limitMs = limitMs;
    this.#bootstrap = rules.bootstrap;
  }

  /** A majority votes. Whoever vouched for the nodes did so for the time before, not for ever. */
  onMajority(): void {
    this.#bootstrap = "wait";
  }

  /** Looks at all nodes and lets in whom it may. One at a time, for all who ask. */
  readmit(): Promise<void> {
    this.#admitting ??= this.#readmit().finally(() => {
      this.#admitting = null;
      this.#lastMs = this.#port.clock.nowMs();
    });
    return this.#admitting;
  }

  /** A node was met that does not vote; whoever asked it has its majority, or will say so. */
  onSleeper(): void {
    if (this.#port.clock.nowMs() - this.#lastMs < LEAST_INTERVAL_MS) return;
    // Whoever needs the node asks again, and is told what is wrong.
    this.readmit().catch(() => {});
  }

  /** Whether a majority is known to know of leases of this length, if they are asked for now. */
  isAnnounced(ttlMs: number): boolean {
    const { ttlMs: mostMs, untilMs } = this.#announced;
    return Math.ceil(ttlMs) <= mostMs && this.#port.clock.nowMs() < untilMs;
  }

  /**
   * A lease of this length counts only when a majority knew of such before the first node voted for
   * it: who restarts learns from the others for how long it may have forgotten something. What they
   * know holds for a time, counted from before they were told: see docs/stores/redlock.md.
   */
  async announce(ttlMs: number): Promise<boolean> {
    const ttl = Math.ceil(ttlMs);
    const { set, announceMs } = this.#rules;
    const sentMs = this.#port.clock.nowMs();
    const poll = this.#ask<boolean, boolean>(["raise", set, `${ttl}`, `${announceMs}`], {
      decode: (raw) => whole(raw) === 1,
      judge: (answers) => {
        const majority = majorityOf(answers.length);
        if (answers.filter((answer) => answer === true).length >= majority) return true;
        return answers.includes(undefined) ? null : false;
      },
    });
    const isKnown = await poll.judged;
    if (!isKnown) return false;
    if (ttl > this.#rules.maxTtlMs)
      this.#overMs = Math.max(this.#overMs, sentMs + announceMs + ttl);
    if (!this.isAnnounced(ttl)) {
      this.#announced = { ttlMs: ttl, untilMs: sentMs + announceMs * TRUSTED_PART };
    }
    return true;
  }

  async #readmit(): Promise<void> {
    const surveys = await this.#survey();
    this.#demandDistinct(surveys);
    const restMs = Math.max(0, Math.ceil(this.#overMs - this.#port.clock.nowMs()));
    const rules = { ...this.#rules, bootstrap: this.#bootstrap, restMs };
    const isAnybodyDue = admit(surveys, surveys, rules).some((instruction) => instruction !== null);
    if (!isAnybodyDue) return;
    const instructions = admit(surveys, await this.#survey(), rules);
    await Promise.all(instructions.map((instruction, at) => this.#tell(at, instruction)));
  }

  async #survey(): Promise<(Survey | null)[]> {
    const poll = this.#ask<Survey, "heard">(["survey"], {
      decode: decodeSurvey,
      judge: (answers) => (answers.includes(undefined) ? null : "heard"),
    });
    await poll.judged;
    return poll.answers.map((answer) => (answer && "run" in answer ? answer : null));
  }

  #demandDistinct(surveys: readonly (Survey | null)[]): void {
    for (const [at, survey] of surveys.entries()) {
      const twin = surveys.findIndex((other) => other !== null && other.run === survey?.run);
      if (survey === null || twin === at) continue;
      const [name, other] = [this.#nodes[at]?.name, this.#nodes[twin]?.name];
      const rule = `must be of different servers: ${other} and ${name} are one`;
      throw new InvalidOptionError("clients", name, rule);
    }
  }

  async #tell(at: number, instruction: Instruction | null): Promise<void> {
    const node = this.#nodes[at];
    if (!instruction || !node) return;
    const { run, floor } = instruction;
    const args =
      instruction.type === "admit"
        ? ["admit", run, `${floor}`]
        : [
            "mark",
            run,
            this.#rules.set,
            instruction.how,
            `${Math.ceil(instruction.maxTtlMs)}`,
            `${instruction.restMs}`,
            `${floor ?? ""}`,
          ];
    const poll = new Poll<boolean, true>(this.#port, {
      nodes: [node],
      keys: this.#keys,
      args,
      limitMs: this.#limitMs,
      decode: (raw) => whole(raw) === 1,
      judge: () => true,
    });
    await poll.judged;
  }

  #ask<Answer, Judgement>(
    args: readonly string[],
    how: {
      decode(raw: unknown): Answer;
      judge(answers: readonly (Answer | Failure | undefined)[]): Judgement | null;
    },
  ): Poll<Answer, Judgement> {
    const [nodes, keys, limitMs] = [this.#nodes, this.#keys, this.#limitMs];
    return new Poll(this.#port, { nodes, keys, args, limitMs, ...how });
  }
}

export function decodeSurvey(raw: unknown): Survey {
  const [run, uptime, nowUs, markedRun = "", set, from, max, floor, top, long, till] = list(raw);
  // A node that says what it holds instead of a marker counts as one that was not heard.
  whole(uptime);
  const marker = (): Marker => ({
    run: text(markedRun),
    set: text(set),
    fromMs: whole(from),
    maxTtlMs: whole(max),
    longTtlMs: whole(long),
    longUntilMs: whole(till),
    floor: floor === "" ? null : whole(floor),
    top: whole(top),
  });
  return {
    run: text(run),
    nowUs: whole(nowUs),
    marker: markedRun === "" ? null : marker(),
  };
}
