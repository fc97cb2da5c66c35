/** The content of the picture of one history, before it has a place on the page. */
import type { Entry, FaultKind, History } from "../history.js";
import type { Ink } from "./svg.js";
import {
  common,
  overlaps,
  type Span,
  type Stretch,
  type Truth,
  truthsOf,
  without,
} from "./truths.js";

/** A word at one moment of a lane. */
export interface Note {
  readonly atMs: number;
  readonly text: string;
  readonly ink: Ink;
  readonly isFlag: boolean;
}

export interface ProcessLane {
  readonly id: string;
  readonly title: string;
  readonly notes: readonly Note[];
  /** From a request to its end. */
  readonly waits: readonly Stretch[];
  readonly beliefs: readonly Stretch[];
  /** Without the times in which the process is stopped. */
  readonly works: readonly Stretch[];
  /** The times in which the process is stopped, or its event loop is blocked. */
  readonly stops: readonly (Stretch & { readonly text: "stopped" | "blocked" })[];
  readonly killedAtMs: readonly number[];
  /** Writes that the resource accepted. */
  readonly writesAtMs: readonly number[];
  /** The moments at which late messages of the process reach the store. */
  readonly arrivals: readonly number[];
}

export interface Scene {
  readonly endMs: number;
  readonly lanes: readonly ProcessLane[];
  readonly store: { readonly notes: readonly Note[]; readonly truths: readonly Truth[] };
  /** The times in which two work. A stopped process does not work. */
  readonly clashes: readonly Span[];
}

export function sceneOf(history: History): Scene {
  // An array sorts stably: entries of one instant keep the order in which they were recorded.
  const entries = [...history.entries].sort((a, b) => a.atMs - b.atMs);
  const endMs = Math.max(1, history.durationMs, ...entries.map(({ atMs }) => atMs));
  const lanes = history.lanes.map(({ id, title }) => {
    const own = entries.filter((entry) => "lane" in entry && entry.lane === id);
    return processLane({ id, title }, own, endMs);
  });
  const truths = truthsOf(entries, lanes, endMs);
  const faults = entries.flatMap((entry) => {
    const isOfStore = entry.type === "fault" && !lanes.some(({ id }) => id === entry.lane);
    return isOfStore ? [flag(entry.atMs, entry.text)] : [];
  });
  const clashes = overlaps(lanes.map(({ works }) => works));
  const betrayals = lanes.flatMap((lane) => betrayalsOf(lane, truths, clashes));
  return {
    endMs,
    lanes,
    store: { notes: [...faults, ...betrayals].sort((a, b) => a.atMs - b.atMs), truths },
    clashes,
  };
}

function processLane(
  lane: Pick<ProcessLane, "id" | "title">,
  entries: readonly Entry[],
  endMs: number,
): ProcessLane {
  const isFault = (entry: Entry, kind: FaultKind): boolean =>
    entry.type === "fault" && entry.what === kind;
  const between = (starts: (entry: Entry) => boolean, ends: (entry: Entry) => boolean) =>
    stretches(entries, starts, (entry) => ends(entry) || isFault(entry, "killed"), endMs);
  const stops = PAUSES.flatMap(([pause, resume]) =>
    between(
      (entry) => isFault(entry, pause),
      (entry) => isFault(entry, resume),
    ).map((stop) => ({ ...stop, text: pause })),
  );
  const works = between(
    (entry) => entry.type === "worksFrom",
    (entry) => entry.type === "worksTo",
  );
  const timesOf = (test: (entry: Entry) => boolean): number[] =>
    entries.filter(test).map(({ atMs }) => atMs);
  return {
    ...lane,
    notes: entries.filter(isNews).flatMap(noteOf),
    waits: between(
      (entry) => entry.type === "asks",
      (entry) => entry.type === "believes" || entry.type === "refused",
    ),
    beliefs: between(
      (entry) => entry.type === "believes",
      (entry) => entry.type === "releases" || entry.type === "disbelieves",
    ),
    // A stopped process executes nothing. A blocked event loop does: its work goes on.
    works: without(
      works,
      stops.filter(({ text }) => text === "stopped"),
    ),
    stops,
    killedAtMs: timesOf((entry) => isFault(entry, "killed")),
    writesAtMs: timesOf((entry) => entry.type === "writes" && !entry.isRefused),
    arrivals: timesOf((entry) => ARRIVALS.some((kind) => isFault(entry, kind))),
  };
}

const ARRIVALS: readonly FaultKind[] = ["late copy", "late release"];

const PAUSES = [
  ["stopped", "continued"],
  ["blocked", "unblocked"],
] as const;

function stretches(
  entries: readonly Entry[],
  starts: (entry: Entry) => boolean,
  ends: (entry: Entry) => boolean,
  endMs: number,
): Stretch[] {
  const found: Stretch[] = [];
  let fromMs: number | undefined;
  for (const entry of entries) {
    if (fromMs !== undefined && ends(entry)) {
      found.push({ fromMs, toMs: entry.atMs, isOpen: false });
      fromMs = undefined;
    } else if (fromMs === undefined && starts(entry)) fromMs = entry.atMs;
  }
  return fromMs === undefined ? found : [...found, { fromMs, toMs: endMs, isOpen: true }];
}

const flag = (atMs: number, text: string): Note => ({ atMs, text, ink: "fault", isFlag: true });

/** A process that was told does not find out once more. */
function isNews({ type }: Entry, index: number, entries: readonly Entry[]): boolean {
  if (type !== "disbelieves") return true;
  const before = entries.slice(0, index).reverse();
  const turn = before.find((one) => one.type === "believes" || one.type === "told");
  return turn?.type !== "told" && before[0]?.type !== "disbelieves";
}

function noteOf(entry: Entry): Note[] {
  const { atMs } = entry;
  const plain = (text: string, ink: Ink = "dim"): Note[] => [{ atMs, text, ink, isFlag: false }];
  switch (entry.type) {
    case "believes":
      return entry.token === undefined ? [] : plain(`token ${entry.token}`, "holder");
    case "refused":
      return plain(`gives up: ${entry.why}`);
    case "writes":
      return entry.isRefused ? plain("write refused", "store") : [];
    case "releases":
      return plain("releases");
    case "told":
      return plain(`told: ${entry.reason}`, "store");
    case "disbelieves":
      return plain(`stops believing: ${entry.why}`);
    case "fault":
      return [flag(atMs, entry.text)];
    default:
      return [];
  }
}

/**
 * The moments at which the store ends the hold of a process that goes on believing in it. Red where
 * another process works meanwhile.
 */
function betrayalsOf(
  { title, beliefs, stops }: ProcessLane,
  truths: readonly Truth[],
  clashes: readonly Span[],
): Note[] {
  const own = truths.filter(({ holder }) => holder === title);
  return own.flatMap(({ fromMs, toMs, isOpen }): Note[] => {
    if (isOpen) return [];
    const belief = beliefs.find((one) => common(one, { fromMs, toMs }) && one.toMs > toMs);
    // A process that holds by another value from here on has lost nothing.
    const isGoneOn = own.some((next) => next.fromMs === toMs);
    if (!belief || isGoneOn) return [];
    const stop = stops.find((one) => one.fromMs <= toMs && toMs < one.toMs);
    const text = stop ? `over while ${title} is ${stop.text}` : `over, but ${title} believes`;
    const isClash = clashes.some((clash) => common(clash, { fromMs: toMs, toMs: belief.toMs }));
    return [{ atMs: toMs, text, ink: isClash && !stop ? "clash" : "dim", isFlag: false }];
  });
}
