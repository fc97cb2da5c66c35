/** Runs one subject through one fault, on servers of its own. */

import { setTimeout as pause } from "node:timers/promises";
import { Actor, type Recorder } from "./actor.js";
import { deploy } from "./deployments/deploy.js";
import type { Deployment } from "./deployments/deployment.js";
import { isExpected } from "./expected.js";
import { type Fault, SHOWN } from "./faults/fault.js";
import type { Entry, Happening, History, VerdictKind } from "./history.js";
import { Lateness, nowMs, Pace } from "./lateness.js";
import type { Processes } from "./processes.js";
import type { Subject } from "./subjects/subject.js";
import { TruthWatch, truthsOf } from "./truth-watch.js";
import { judge } from "./verdict.js";
import { versionsOf } from "./versions.js";

/** Two processes; a third one where the fault needs it. */
const LANES = ["A", "B", "C"] as const;
/** The links of the reader of the truth, which no fault of a lane hits. */
const READER = "reader";

/**
 * Timers and answers of servers may be late by this part of the ttl; in later trials the machine
 * was too busy. A request and its answer pass four processes, and each of them may be late.
 */
const LATEST = 0.1;
/** The store is read once in this part of the ttl: more often than a picture shows. */
const TRUTH_EVERY = 0.005;
const pace = new Pace();
/** Holders that overlap: a store of Holdfast prevents or documents it, on a busy machine too. */
const OVERLAPS: readonly VerdictKind[] = ["two held", "told late"];

export async function runTrial(
  subject: Subject,
  fault: Fault,
  processes: Processes,
): Promise<History> {
  const usualMs = (fault.stretch ?? 1) * subject.ttlMs;
  let lateMs = 0;
  for (const [late, stretch] of pace.stretches().entries()) {
    const ttlMs = stretch * usualMs;
    const trial = await runOnce(subject, fault, ttlMs, processes);
    const isOnTime = trial.lateMs <= (fault.latest ?? LATEST) * ttlMs;
    if (isOnTime) pace.note(late);
    if (isOnTime || isViolation(subject, trial.history)) return trial.history;
    lateMs = trial.lateMs;
  }
  throw new Error(`the machine is too busy: a step was late by ${Math.round(lateMs)} ms`);
}

/** A wait may be the fault of a busy machine, an overlap of two holders of Holdfast may not. */
function isViolation({ family }: Subject, { subject, fault, verdict }: History): boolean {
  const isOverlap = family === "holdfast" && OVERLAPS.includes(verdict.kind);
  return isOverlap && !isExpected(subject, fault, verdict);
}

interface Trial {
  readonly history: History;
  /**
   * The longest delay of a timer in the lab and in the processes of the trial, or of an answer of a
   * server; Infinity where the script itself was too late.
   */
  readonly lateMs: number;
}

async function runOnce(
  subject: Subject,
  fault: Fault,
  ttlMs: number,
  processes: Processes,
): Promise<Trial> {
  const lanes = LANES.slice(0, fault.processes ?? 2);
  await using store = await deploy(subject, fault, [...lanes, READER]);
  const record = new Record(subject.isFenced ?? false);
  const actors = lanes.map((lane) => {
    const { ports } = store.links(lane);
    const setting = { subject: subject.id, lane, ports, ttlMs, folder: store.folder };
    return new Actor(setting, record, processes);
  });
  try {
    await Promise.all(actors.map((actor) => actor.ready()));
    const lateness = new Lateness();
    const { history, lateMs } = await perform(subject, fault, ttlMs, { store, actors, record });
    lateness.end();
    for (const actor of actors) actor.assertAlive();
    const late = [lateMs, lateness.longestMs, ...actors.map((actor) => actor.lateMs)];
    return { history, lateMs: Math.max(...late) };
  } finally {
    await Promise.all(actors.map((actor) => actor[Symbol.asyncDispose]()));
  }
}

interface Parts {
  readonly store: Deployment;
  readonly actors: readonly Actor[];
  readonly record: Record;
}

async function perform(
  subject: Subject,
  fault: Fault,
  ttlMs: number,
  { store, actors, record }: Parts,
): Promise<Trial> {
  const [a, b, c] = actors;
  if (!a || !b) throw new Error("a trial has two processes at least");
  const startedAt = new Date().toISOString();
  const reader = await subject.readTruth?.({
    ports: store.links(READER).ports,
    ttlMs,
    folder: store.folder,
  });
  const read = (): Promise<string | null> => reader?.read() ?? store.readTruth();
  const truth = new TruthWatch(read, TRUTH_EVERY * ttlMs);
  let isLate = false;
  record.start();
  await fault.run({
    a,
    b,
    get c() {
      if (!c) throw new Error("this fault has two processes");
      return c;
    },
    store,
    ttlMs,
    happens: (what, text) => record.record(nowMs(), { type: "fault", lane: "store", what, text }),
    late: () => {
      isLate = true;
    },
  });
  await settle(actors, ttlMs);
  const isEndless = await store.isEndless().catch(() => false);
  const sightings = await truth.end();
  await reader?.close();
  const durationMs = record.nowMs();
  const entries = record.entries(durationMs);
  const laneOf = (by: string): string | null =>
    actors.find(({ pid }) => pid === reader?.pidOf?.(by))?.lane ?? store.laneOf(by);
  const truths = truthsOf(record.timed(sightings), entries, laneOf);
  const history: History = {
    subject: subject.id,
    fault: fault.id,
    subjectTitle: subject.title,
    faultTitle: fault.title,
    ttlMs,
    versions: { ...versionsOf(subject), ...store.versions },
    command: `npm run lab -- ${subject.id} ${fault.id}`,
    startedAt,
    durationMs,
    verdict: judge(entries, {
      patienceMs: fault.patience * ttlMs,
      isEndless,
      isOrdered: fault.isOrdered ?? false,
      endMs: durationMs,
    }),
    lanes: lanesOf(entries),
    entries: [...entries, ...truths].sort((one, other) => one.atMs - other.atMs),
  };
  // A reader of its own asks again where a fault keeps its server from answering.
  const answerMs = reader ? 0 : truth.longestMs;
  return { history, lateMs: isLate ? Number.POSITIVE_INFINITY : answerMs };
}

/** All that work finish, and all that wait get their turn, if the lock lets them. */
async function settle(actors: readonly Actor[], ttlMs: number): Promise<void> {
  for (;;) {
    const working = actors.filter((actor) => actor.isBelieving);
    if (working.length > 0) await pause(SHOWN * ttlMs);
    await Promise.all(working.map((actor) => actor.finishes()));
    const waiting = actors.filter((actor) => actor.isAsking);
    if (waiting.length === 0) {
      if (actors.every((actor) => !actor.isBelieving)) return;
      continue;
    }
    const turns = waiting.map(async (actor) => {
      if (!(await actor.worksWithin(1.5 * ttlMs))) throw new Error("no turn");
    });
    const isServed = await Promise.any(turns).then(
      () => true,
      () => false,
    );
    if (!isServed) return;
  }
}

function lanesOf(entries: readonly Entry[]): { id: string; title: string }[] {
  const used = LANES.filter((id) => entries.some((entry) => "lane" in entry && entry.lane === id));
  return used.map((id) => ({ id, title: `process ${id}` }));
}

/** The entries of one trial, and the resource that the lock protects. */
class Record implements Recorder {
  readonly #entries: Entry[] = [];
  readonly #isFenced: boolean;
  #startMs = 0;
  #highestToken = 0n;

  constructor(isFenced: boolean) {
    this.#isFenced = isFenced;
  }

  start(): void {
    this.#startMs = nowMs();
  }

  record(atMs: number, happening: Happening): void {
    this.#entries.push({ atMs: atMs - this.#startMs, ...happening });
  }

  write(lane: string, atMs: number, token: string | undefined): void {
    const number = BigInt(token ?? 0);
    const isRefused = this.#isFenced && number < this.#highestToken;
    if (number > this.#highestToken) this.#highestToken = number;
    const shown = token === undefined ? {} : { token };
    this.record(atMs, { type: "writes", lane, isRefused, ...shown });
  }

  timed<T extends { readonly atMs: number }>(sightings: readonly T[]): T[] {
    return sightings.map((one) => ({ ...one, atMs: one.atMs - this.#startMs }));
  }

  nowMs(): number {
    return nowMs() - this.#startMs;
  }

  /** In the order of time. Work of a process that was killed ends with it. */
  entries(endMs: number): Entry[] {
    const open = this.#entries.filter((entry) => {
      return entry.type === "worksFrom" && !this.#find("worksTo", entry.lane);
    });
    const ends = open.map((entry): Entry => {
      const lane = "lane" in entry ? entry.lane : "";
      const killed = this.#entries.find(
        (one) => one.type === "fault" && one.what === "killed" && one.lane === lane,
      );
      return { atMs: killed?.atMs ?? endMs, type: "worksTo", lane };
    });
    return [...this.#entries, ...ends].sort((one, other) => one.atMs - other.atMs);
  }

  #find(type: Entry["type"], lane: string): Entry | undefined {
    return this.#entries.find((one) => one.type === type && "lane" in one && one.lane === lane);
  }
}
