/**
 * Which nodes may vote, and from when: the delayed restart of the published algorithm, done by
 * software. Pure: takes a survey of all nodes, and gives an instruction for each node.
 *
 * A node that restarted may have forgotten votes for leases that still live, and ballots that were
 * the tokens of grants. So the node votes again only when every lease that it may have forgotten is
 * over, and only above every ballot that it may have forgotten. A majority of the other nodes knows
 * both: it shares a node with any majority that granted a lease by the vote of this node.
 */
import { majorityOf } from "./tally.js";

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
