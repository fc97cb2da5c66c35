/**
 * Which nodes may vote, and from when: the delayed restart of the published algorithm, done by
 * software. Pure: from what the nodes say of themselves to what each of them is to be told.
 *
 * A node that restarted may have forgotten votes for leases that still live, and ballots that were
 * the tokens of grants. So it votes again only when every lease it may have forgotten is over, and
 * not below any ballot that it may have forgotten. Both are known to a majority of the others: any
 * majority that granted something with this node's vote has a node in common with it.
 */
import { majorityOf } from "./tally.js";

/** What a node says of itself. */
export interface Survey {
  /** Of the process that answered. */
  readonly run: string;
  readonly nowUs: number;
  /** What it was told last, maybe in an earlier life; null when it knows nothing. */
  readonly marker: Marker | null;
}

export interface Marker {
  readonly run: string;
  readonly set: string;
  readonly fromMs: number;
  /** Leases of up to this length may be granted at any time. */
  readonly maxTtlMs: number;
  /** Longer leases, of up to this length, may be granted until `longUntilMs`; 0 where none were. */
  readonly longTtlMs: number;
  readonly longUntilMs: number;
  /** Null until it has learned it. */
  readonly floor: number | null;
  /** No ballot that it voted for is above this. */
  readonly top: number;
}

/** What a node is to be told. */
export type Instruction =
  | {
      readonly type: "mark";
      readonly run: string;
      /** Votes after the longest lease; after the longest lease since its process began; now. */
      readonly how: "join" | "boot" | "now";
      readonly maxTtlMs: number;
      /** For so long a lease that is longer than that may live. */
      readonly restMs: number;
      readonly floor: number | null;
    }
  | { readonly type: "admit"; readonly run: string; readonly floor: number };

export interface AdmissionRules {
  readonly set: string;
  /** Leases of up to this length may be granted at any time. */
  readonly maxTtlMs: number;
  /** For so long a longer lease may live, as far as this client knows. */
  readonly restMs: number;
  readonly bootstrap: "wait" | "now";
}

/**
 * One instruction for each node that needs one; null for the others, and for those not heard. What
 * is said of the others must be younger than what a node says of itself (`later`): an answer from
 * before its restart, or from before its time had come, may miss what it forgot.
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
  const isStrange = isOfOthers(survey, set);
  // Whoever names the wrong nodes takes none of them from those they belong to.
  const isAmongOthers = [survey, ...others].some((one) => one !== null && isOfOthers(one, set));
  if (isAmongOthers && bootstrap === "wait") return null;
  const isAwake = isInformed(survey, set);
  if (isAwake || (isMarked && !isStrange && marker.floor !== null && bootstrap === "wait")) {
    return null;
  }

  const informed: Informed[] = [];
  let unheard = 0;
  for (const other of others) {
    if (other === null) unheard += 1;
    else if (isInformed(other, set)) informed.push(other);
  }
  const telling = marker ? [{ nowUs, marker }, ...informed] : informed;
  const maxTtlMs = Math.max(known.maxTtlMs, ...telling.map((one) => one.marker.maxTtlMs));
  // rule: restarted-node-asks-for-long-leases
  const restMs = Math.max(known.restMs, ...telling.map(longRestMs));
  const top = Math.max(0, ...informed.map((one) => one.marker.top));

  if (informed.length >= majority) {
    if (!isMarked) return { type: "mark", run, how: "join", maxTtlMs, restMs, floor: null };
    if (!isStrange && marker.fromMs * 1000 <= nowUs) return { type: "admit", run, floor: top };
    return null;
  }
  const floor = Math.max(top, nowUs);
  if (bootstrap === "now") return { type: "mark", run, how: "now", maxTtlMs, restMs, floor };
  // Those that are not heard may know: only they can tell that nothing is lost.
  if (informed.length + unheard >= majority) return null;
  if (isMarked) return marker.fromMs * 1000 <= nowUs ? { type: "admit", run, floor } : null;
  return { type: "mark", run, how: "boot", maxTtlMs, restMs, floor };
}

function isOfOthers({ marker, run }: Survey, set: string): boolean {
  return marker?.run === run && marker.set !== set;
}

/**
 * For so long a lease that is longer than `maxTtlMs` may live: it was voted for at `longUntilMs`,
 * at the latest. Later than that a marker says nothing of such leases.
 */
export function longRestMs({ nowUs, marker }: Pick<Informed, "nowUs" | "marker">): number {
  // rule: long-leases-are-remembered
  return Math.max(0, marker.longUntilMs + marker.longTtlMs - Math.floor(nowUs / 1000));
}

type Informed = Survey & { readonly marker: Marker };

/** It votes: it remembers what it voted for, or what it forgot is over. */
function isInformed(survey: Survey, set: string): survey is Informed {
  const { marker, run, nowUs } = survey;
  if (marker?.run !== run || marker.set !== set) return false;
  return marker.floor !== null && marker.fromMs * 1000 <= nowUs;
}
