/** Marks and admits nodes, so that they vote; admission.ts has the rules. */
import { InvalidOptionError } from "../../errors/index.js";
import { list, text, whole } from "../../events/foreign-data.js";
import { majorityOf, Tally } from "../../rules/majority.js";
import type { Failure, NodeRenewal, Vote } from "./protocol.js";
import type { Poll, Question, Quorum } from "./quorum.js";

/** In the background, nodes that cannot be admitted yet are surveyed no more often. */
const MIN_INTERVAL_MS = 500;
/** A node that is slow once in its life still counts. */
const SURVEY_TIMEOUTS = 5;

/** The longest lease: nodes keep ballots and records for a little longer. */
export const MAX_TTL_MS = 86_400_000;

/** Clocks of nodes and of this client may run apart by a fifth: this part of a time is certain. */
const TRUSTED_PART = 0.75;

export interface MembershipRules extends Omit<AdmissionRules, "restMs" | "set"> {
  /** For how long a node remembers the announcement of longer leases. */
  readonly announceMs: number;
}

export class Membership {
  readonly #quorum: Quorum;
  readonly #keys: readonly string[];
  readonly #rules: MembershipRules;
  #isClosed = false;
  #admitting: Promise<void> | null = null;
  #lastMs = Number.NEGATIVE_INFINITY;
  /** A majority knows of leases of this length, until then by this client's clock. */
  #announced = { ttlMs: 0, untilMs: 0 };
  /** When every lease above `maxTtlMs` that this client announced is over. */
  #overMs = 0;
  #bootstrap: AdmissionRules["bootstrap"];

  constructor(quorum: Quorum, keys: readonly string[], rules: MembershipRules) {
    this.#quorum = quorum;
    this.#keys = keys;
    this.#rules = rules;
    this.#bootstrap = rules.bootstrap;
  }

  /** The longest usual lease. */
  get maxTtlMs(): number {
    return this.#rules.maxTtlMs;
  }

  /**
   * The longest lease that is allowed at all: for at most as long as a node remembers the ballots
   * above it. A node that has forgotten them would give a lease that was revoked back to its
   * holder. A single server that waits after its start has no other node that remembers a lease
   * above `maxTtlMs`.
   */
  get limitMs(): number {
    const { bootstrap, maxTtlMs } = this.#rules;
    return this.#quorum.isSingleServer && bootstrap === "wait" ? maxTtlMs : MAX_TTL_MS;
  }

  /** The error for a lease that may never be this long; null if it may. */
  refusalOf(ttlMs: number): InvalidOptionError | null {
    const { limitMs } = this;
    if (ttlMs <= limitMs) return null;
    const rule =
      limitMs === MAX_TTL_MS
        ? `must be at most ${MAX_TTL_MS} with redlock: nodes remember a lease for a day`
        : `must be at most maxTtlMs (${limitMs}): a server that restarts waits for that time`;
    return new InvalidOptionError("ttlMs", ttlMs, rule);
  }

  /** A majority votes. `bootstrap: "now"` vouches for the time before that, not forever. */
  onMajority(): void {
    this.#bootstrap = "wait";
  }

  /** Surveys all nodes and admits those that may vote. Callers share one survey at a time. */
  readmit(): Promise<void> {
    if (this.#quorum.isSingleServer) return Promise.resolve();
    this.#admitting ??= this.#readmit().finally(() => {
      this.#admitting = null;
      this.#lastMs = this.#quorum.runtime.clock.nowMs();
    });
    return this.#admitting;
  }

  /** Admits a node in the background when its answer shows that it waits for that. */
  onAnswer(answer: Vote | NodeRenewal | Failure): void {
    if (answer.type !== "not_voting" || this.#isClosed) return;
    if (answer.why !== "unmarked" && answer.why !== "unfloored") return;
    if (this.#quorum.runtime.clock.nowMs() - this.#lastMs < MIN_INTERVAL_MS) return;
    // A caller that needs the node surveys it again, and gets the error.
    this.readmit().catch(() => {});
  }

  close(): void {
    this.#isClosed = true;
  }

  /** Whether a majority certainly knows of leases of this length, if they are granted now. */
  isAnnounced(ttlMs: number): boolean {
    if (this.#quorum.isSingleServer) return ttlMs <= this.limitMs;
    const { ttlMs: mostMs, untilMs } = this.#announced;
    return Math.ceil(ttlMs) <= mostMs && this.#quorum.runtime.clock.nowMs() < untilMs;
  }

  /**
   * Announces leases of this length; true when a majority knows of them. A lease counts only when a
   * majority knew of its length before the first node voted for it: a node that restarts learns
   * from the other nodes for how long a forgotten lease may live. An announcement holds for a time,
   * counted from before it was sent: see docs/stores/redlock.md.
   */
  async announce(ttlMs: number): Promise<boolean> {
    if (this.#quorum.isSingleServer || ttlMs > this.limitMs) return ttlMs <= this.limitMs;
    const ttl = Math.ceil(ttlMs);
    const { announceMs } = this.#rules;
    const { set, runtime } = this.#quorum;
    const sentMs = runtime.clock.nowMs();
    const poll = this.#ask<Announcement, boolean>(["raise", set, `${ttl}`, `${announceMs}`], {
      decode: (raw) => ({ type: whole(raw) === 1 ? "known" : "refused" }),
      judge: (answers) => {
        const tally = new Tally(answers);
        if (tally.isMajority("known")) return true;
        return tally.isOpen ? null : false;
      },
    });
    const isKnown = await poll.judged;
    if (!isKnown) return false;
    if (ttl > this.#rules.maxTtlMs) {
      this.#overMs = Math.max(this.#overMs, sentMs + announceMs + ttl);
    }
    if (!this.isAnnounced(ttl)) {
      this.#announced = { ttlMs: ttl, untilMs: sentMs + announceMs * TRUSTED_PART };
    }
    return true;
  }

  async #readmit(): Promise<void> {
    const surveys = await this.survey();
    this.#demandDistinct(surveys);
    const { runtime, set } = this.#quorum;
    const restMs = Math.max(0, Math.ceil(this.#overMs - runtime.clock.nowMs()));
    const rules = { ...this.#rules, set, bootstrap: this.#bootstrap, restMs };
    const isAnyDue = admit(surveys, surveys, rules).some((instruction) => instruction !== null);
    if (!isAnyDue) return;
    const instructions = admit(surveys, await this.survey(), rules);
    await Promise.all(instructions.map((instruction, at) => this.#tell(at, instruction)));
  }

  /** Asks every node about itself; null for a node that did not answer in time. */
  async survey(): Promise<(Survey | null)[]> {
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
      const { nodes } = this.#quorum;
      const [name, other] = [nodes[at]?.name, nodes[twin]?.name];
      const rule = `must be of different servers: ${other} and ${name} are one`;
      throw new InvalidOptionError("clients", name, rule);
    }
  }

  async #tell(at: number, instruction: Instruction | null): Promise<void> {
    const node = this.#quorum.nodes[at];
    if (!instruction || !node) return;
    const { run, floor } = instruction;
    const args =
      instruction.type === "admit"
        ? ["admit", run, `${floor}`]
        : [
            "mark",
            run,
            this.#quorum.set,
            instruction.how,
            `${Math.ceil(instruction.maxTtlMs)}`,
            `${instruction.restMs}`,
            `${floor ?? ""}`,
          ];
    const how = { nodes: [node], decode: whole, judge: (): true => true };
    await this.#ask<number, true>(args, how).judged;
  }

  #ask<Answer, Judgement>(
    args: readonly string[],
    how: Pick<Question<Answer, Judgement>, "nodes" | "decode" | "judge">,
  ): Poll<Answer, Judgement> {
    const limitMs = SURVEY_TIMEOUTS * this.#quorum.nodeTimeoutMs;
    return this.#quorum.ask({ keys: this.#keys, args, limitMs, ...how });
  }
}

interface Announcement {
  readonly type: "known" | "refused";
}

export function decodeSurvey(raw: unknown): Survey {
  const [run, uptime, nowUs, markedRun = "", set, from, max, floor, top, long, till] = list(raw);
  // A node that reports foreign data instead of its state counts as a node that is silent.
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

/**
 * Which nodes may vote, and from when: the delayed restart of the published algorithm, done by
 * software. Pure: takes a survey of all nodes, and gives an instruction for each node.
 *
 * A node that restarted may have forgotten votes for leases that still live, and ballots that were
 * the tokens of grants. So the node votes again only when every lease that it may have forgotten is
 * over, and only above every ballot that it may have forgotten. A majority of the other nodes knows
 * both: it shares a node with any majority that granted a lease by the vote of this node.
 */

/** The state of a node, as the node reports it. */
export interface Survey {
  /** The run id of the process that answered. */
  readonly run: string;
  readonly nowUs: number;
  /** The last marker, maybe of an earlier process; null when the node has none. */
  readonly marker: Marker | null;
}

/** The last instruction to a node, as the node keeps it. */
export interface Marker {
  readonly run: string;
  readonly set: string;
  readonly fromMs: number;
  /** Leases of up to this length may be granted at any time. */
  readonly maxTtlMs: number;
  /** Longer leases, of up to this length, may be granted until `longUntilMs`; 0 if none may. */
  readonly longTtlMs: number;
  readonly longUntilMs: number;
  /** The node votes only above this ballot. Null until the node has learned it. */
  readonly floor: number | null;
  /** No ballot that the node voted for is above this. */
  readonly top: number;
}

/** An instruction to a node about its right to vote. */
export type Instruction =
  | {
      readonly type: "mark";
      readonly run: string;
      /** The node votes after the longest lease; the same since its process began; or now. */
      readonly how: "join" | "boot" | "now";
      readonly maxTtlMs: number;
      /** How long a lease above `maxTtlMs` may live. */
      readonly restMs: number;
      readonly floor: number | null;
    }
  | { readonly type: "admit"; readonly run: string; readonly floor: number };

export interface AdmissionRules {
  readonly set: string;
  /** Leases of up to this length may be granted at any time. */
  readonly maxTtlMs: number;
  /** How long a lease above `maxTtlMs` may live, as far as this client knows. */
  readonly restMs: number;
  readonly bootstrap: "wait" | "now";
}

/**
 * One instruction for each node that needs one; null for every other node, and for a silent node.
 * The survey of the other nodes (`later`) must be younger than the survey of the node itself: an
 * answer from before its restart, or from before its time to vote, may miss what the node forgot.
 */
export function admit(
  surveys: readonly (Survey | null)[],
  later: readonly (Survey | null)[],
  rules: AdmissionRules,
): (Instruction | null)[] {
  return surveys.map((survey, at) => {
    if (survey === null) return null;
    const others = later.filter((_, index) => index !== at);
    return instruct(survey, others, majorityOf(surveys.length), rules);
  });
}

function instruct(
  survey: Survey,
  others: readonly (Survey | null)[],
  majority: number,
  { set, bootstrap, ...known }: AdmissionRules,
): Instruction | null {
  const { run, nowUs, marker } = survey;
  const isMarked = marker?.run === run;
  const isOfOther = isOfOtherSet(survey, set);
  // A client that names the wrong nodes must not take a node from its own set.
  const isAnyOfOtherSet = [survey, ...others].some((one) => one !== null && isOfOtherSet(one, set));
  if (isAnyOfOtherSet && bootstrap === "wait") return null;
  const isAwake = isInformed(survey, set);
  if (isAwake || (isMarked && !isOfOther && marker.floor !== null && bootstrap === "wait")) {
    return null;
  }

  const informed: Informed[] = [];
  const marked: Informed[] = [];
  let unheard = 0;
  for (const other of others) {
    if (other === null) unheard += 1;
    else if (isInformed(other, set)) informed.push(other);
    else if (isMarkedFor(other, set)) marked.push(other);
  }
  const canJoin = informed.length >= majority;
  const telling = marker ? [{ nowUs, marker }, ...informed] : [...informed];
  // A majority that votes knows of every lease. Fewer nodes may not: then a node that still waits
  // may be the only one that knows what it waits for.
  if (!canJoin) telling.push(...marked);
  const maxTtlMs = Math.max(known.maxTtlMs, ...telling.map((one) => one.marker.maxTtlMs));
  const waitsMs = canJoin ? [] : marked.map(waitMs);
  // rule: restarted-node-asks-for-long-leases
  const restMs = Math.max(known.restMs, ...telling.map(longRestMs), ...waitsMs);
  const top = Math.max(0, ...informed.map((one) => one.marker.top));

  if (canJoin) {
    if (!isMarked) return { type: "mark", run, how: "join", maxTtlMs, restMs, floor: null };
    if (!isOfOther && marker.fromMs * 1000 <= nowUs) return { type: "admit", run, floor: top };
    return null;
  }
  const floor = Math.max(top, nowUs);
  if (bootstrap === "now") return { type: "mark", run, how: "now", maxTtlMs, restMs, floor };
  // The silent nodes may remember: without them it is not certain that no node does.
  if (informed.length + unheard >= majority) return null;
  if (isMarked) return marker.fromMs * 1000 <= nowUs ? { type: "admit", run, floor } : null;
  return { type: "mark", run, how: "boot", maxTtlMs, restMs, floor };
}

function isOfOtherSet({ marker, run }: Survey, set: string): boolean {
  return marker?.run === run && marker.set !== set;
}

/**
 * How long a lease above `maxTtlMs` may live: the last vote for such a lease was at
 * `longUntilMs`, at the latest.
 */
export function longRestMs({ nowUs, marker }: Pick<Informed, "nowUs" | "marker">): number {
  // rule: long-leases-are-remembered
  return Math.max(0, marker.longUntilMs + marker.longTtlMs - Math.floor(nowUs / 1000));
}

type Informed = Survey & { readonly marker: Marker };

/** The node votes: it remembers its votes, or all leases that it forgot have expired. */
function isInformed(survey: Survey, set: string): survey is Informed {
  if (!isMarkedFor(survey, set) || survey.marker.run !== survey.run) return false;
  return survey.marker.floor !== null && waitMs(survey) <= 0;
}

/** The node has a marker of this set, maybe of an earlier process. */
function isMarkedFor(survey: Survey, set: string): survey is Informed {
  return survey.marker?.set === set;
}

/** How long the node still waits until it votes. */
function waitMs({ marker, nowUs }: Informed): number {
  return Math.ceil(marker.fromMs - nowUs / 1000);
}
