/** Small histories for the tests of the pictures. */
import type { Entry, History } from "../history.js";

/** Rung 2: A is stopped past its ttl, works while B holds, and deletes B's key. */
export const stoppedHolder: History = historyOf({
  subject: "rung-2",
  fault: "stopped-holder",
  subjectTitle: "Rung 2: SET NX PX, plain DEL",
  faultTitle: "the holder is stopped past its ttl",
  verdict: { kind: "two held", ms: 3100, text: "two worked at once for 3.1 s" },
  entries: [
    { atMs: 0, type: "truth", holder: null },
    { atMs: 590, type: "asks", lane: "A" },
    { atMs: 600, type: "believes", lane: "A" },
    { atMs: 601, type: "truth", holder: "A" },
    { atMs: 800, type: "worksFrom", lane: "A" },
    { atMs: 2000, type: "fault", lane: "A", what: "stopped", text: "SIGSTOP" },
    { atMs: 2100, type: "asks", lane: "B" },
    { atMs: 4600, type: "truth", holder: null },
    { atMs: 4800, type: "believes", lane: "B" },
    { atMs: 4801, type: "truth", holder: "B" },
    { atMs: 5000, type: "worksFrom", lane: "B" },
    { atMs: 8000, type: "fault", lane: "A", what: "continued", text: "SIGCONT" },
    { atMs: 10200, type: "worksTo", lane: "A" },
    { atMs: 10400, type: "releases", lane: "A" },
    { atMs: 10402, type: "truth", holder: null },
    { atMs: 10410, type: "asks", lane: "C" },
    { atMs: 10500, type: "believes", lane: "C" },
    { atMs: 10501, type: "truth", holder: "C" },
    { atMs: 10700, type: "worksFrom", lane: "C" },
    { atMs: 11200, type: "worksTo", lane: "B" },
    { atMs: 11300, type: "releases", lane: "B" },
    { atMs: 13400, type: "worksTo", lane: "C" },
    { atMs: 14000, type: "releases", lane: "C" },
  ],
});

/** Rung 1: A is killed, and B waits until the trial ends. */
export const killedHolder: History = historyOf({
  subject: "rung-1",
  fault: "killed-holder",
  subjectTitle: "Rung 1: SETNX, DEL",
  faultTitle: "the holder is killed",
  verdict: { kind: "stuck", ms: null, text: "the lock is never free again" },
  entries: [
    { atMs: 0, type: "asks", lane: "A" },
    { atMs: 2, type: "believes", lane: "A" },
    { atMs: 3, type: "truth", holder: "A" },
    { atMs: 4, type: "worksFrom", lane: "A" },
    { atMs: 20, type: "fault", lane: "A", what: "killed", text: "kill -9" },
    { atMs: 30, type: "asks", lane: "B" },
    { atMs: 900, type: "refused", lane: "B", why: "the lock is still taken after 3 ttl" },
  ],
});

/** A store of Holdfast with a fence: everything that a lane can have, close together. */
export const crowded: History = historyOf({
  subject: "holdfast-redis",
  fault: "failover",
  subjectTitle: "Holdfast on Redis",
  faultTitle: "the master dies before it replicates, and its clock jumps",
  verdict: { kind: "told in time", text: "A was told 210 ms before B began" },
  entries: [
    { atMs: 0, type: "asks", lane: "A" },
    { atMs: 3.2, type: "truth", holder: "A", token: "1789000000000001" },
    { atMs: 3.4, type: "believes", lane: "A", token: "1789000000000001" },
    { atMs: 4, type: "worksFrom", lane: "A" },
    { atMs: 5, type: "writes", lane: "A", isRefused: false, token: "1789000000000001" },
    { atMs: 10, type: "asks", lane: "B" },
    { atMs: 100, type: "fault", lane: "store", what: "cut", text: "link to the replica cut" },
    { atMs: 120, type: "fault", lane: "store", what: "killed", text: "master killed" },
    { atMs: 140, type: "fault", lane: "store", what: "failed over", text: "replica promoted" },
    { atMs: 141, type: "fault", lane: "store", what: "clock shifted", text: "clock + 60 s" },
    { atMs: 142, type: "truth", holder: null },
    { atMs: 300, type: "told", lane: "A", reason: "lost: the store does not know it" },
    { atMs: 300.4, type: "disbelieves", lane: "A", why: "its signal aborted" },
    { atMs: 301, type: "worksTo", lane: "A" },
    { atMs: 400, type: "truth", holder: "ghost" },
    { atMs: 480, type: "truth", holder: "B", token: "1789000000060002" },
    { atMs: 510, type: "believes", lane: "B", token: "1789000000060002" },
    { atMs: 511, type: "worksFrom", lane: "B" },
    { atMs: 512, type: "writes", lane: "B", isRefused: false, token: "1789000000060002" },
    { atMs: 520, type: "writes", lane: "A", isRefused: true, token: "1789000000000001" },
    { atMs: 560, type: "fault", lane: "B", what: "blocked", text: "event loop blocked" },
    { atMs: 590, type: "fault", lane: "B", what: "unblocked", text: "event loop free" },
    { atMs: 600, type: "worksTo", lane: "B" },
    { atMs: 601, type: "releases", lane: "B" },
    { atMs: 602, type: "truth", holder: null },
  ],
});

type Told = Pick<
  History,
  "subject" | "fault" | "subjectTitle" | "faultTitle" | "verdict" | "entries"
>;

export function historyOf(told: Told): History {
  const named = (entry: Entry): string[] => ("lane" in entry ? [entry.lane] : []);
  const ids = [...new Set(told.entries.flatMap(named))].filter((id) => id !== "store").sort();
  return {
    ...told,
    ttlMs: 4000,
    versions: { node: "20.20.2", redis: "7.0.15", ioredis: "6.0.0" },
    command: `npm run lab -- ${told.subject} ${told.fault}`,
    startedAt: "2026-11-17T00:00:00.000Z",
    durationMs: Math.max(0, ...told.entries.map(({ atMs }) => atMs)),
    lanes: ids.map((id) => ({ id, title: `process ${id}` })),
  };
}
