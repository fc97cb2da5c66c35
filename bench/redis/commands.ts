import { startProxy } from "../../test/faults/proxy.js";
import type { Contestant, Question, Sample } from "../contest.js";
import type { Locker } from "../turns.js";
import { candidate } from "./candidates.js";
import { BenchRedis } from "./server.js";

const redis = new BenchRedis();
const MOST = 2;

export const commands: Question = {
  store: "redis",
  name: "commands",
  title: "requests on the wire per contended handoff",
  about:
    "The cost of a handoff for the network, counted on the wire, with few and with many waiters.",
  unit: "requests",
  better: "lower",
  rounds: 3,
  startsFresh: true,
  async contestants(isQuick) {
    const port = await redis.start();
    const handoffs = isQuick ? 20 : 300;
    const counted = (name: string, role: Contestant["role"], waiting: number): Contestant => ({
      name: `${name}, ${waiting} wait`,
      role,
      round: () => countRequests(name, port, waiting, handoffs),
    });
    return [
      counted("holdfast strict", "holdfast", 2),
      counted("holdfast strict", "holdfast", 100),
      counted("holdfast", "holdfast", 100),
      counted("redis-semaphore", "peer", 20),
      counted("redlock 4", "peer", 20),
    ];
  },
  goals(of) {
    return [2, 100].map((waiting) => {
      const value = of(`holdfast strict, ${waiting} wait`).median;
      // Now and then a client says that it lives: that is no part of a handoff, but counted here.
      const isMet = Math.round(value * 10) <= 10 * MOST;
      const text = `${waiting} wait: at most ${MOST} per handoff, to a tenth`;
      return { text, value, isMet };
    });
  },
  close: () => redis.stop(),
};

/**
 * Counts the requests of `waiting` waiters that each have one turn, from the release that starts
 * the first turn to the last grant. The requests that put them into the queue are sent before.
 */
async function countRequests(
  name: string,
  port: number,
  waiting: number,
  handoffs: number,
): Promise<Sample> {
  await using proxy = await startProxy({ targetPort: port, framing: "resp" });
  let requests = 0;
  proxy.onRequest(() => {
    requests += 1;
    return undefined;
  });
  const bytes = (): number => proxy.counters.requests.bytes + proxy.counters.replies.bytes;
  const locker = await candidate(name).open(proxy.port);
  const lines = Math.ceil(handoffs / waiting);
  let [ofHandoffs, bytesOfHandoffs] = [0, 0];
  for (let line = 0; line < lines; line += 1) {
    const { releaseFirst, lastGranted, ended } = await standInLine(locker, name, waiting);
    await untilQuiet(() => requests);
    const [requestsBefore, bytesBefore] = [requests, bytes()];
    await Promise.all([releaseFirst(), lastGranted]);
    ofHandoffs += requests - requestsBefore;
    bytesOfHandoffs += bytes() - bytesBefore;
    await ended;
  }
  await locker.close();
  const total = lines * waiting;
  return { value: ofHandoffs / total, more: { "bytes/handoff": bytesOfHandoffs / total } };
}

interface Line {
  releaseFirst(): Promise<unknown>;
  readonly lastGranted: Promise<void>;
  readonly ended: Promise<unknown>;
}

async function standInLine(locker: Locker, name: string, waiting: number): Promise<Line> {
  const releaseFirst = await locker.acquire(name);
  let turns = 0;
  let onLast = (): void => {};
  const lastGranted = new Promise<void>((resume) => {
    onLast = resume;
  });
  const tasks = Array.from({ length: waiting }, async () => {
    const release = await locker.acquire(name);
    turns += 1;
    // Work enough for a confirm to be written before the release.
    await new Promise((resume) => setTimeout(resume, 1));
    if (turns === waiting) onLast();
    await release();
  });
  return { releaseFirst, lastGranted, ended: Promise.all(tasks) };
}

/** Waits until no request comes any more, or for a moment where contestants poll. */
async function untilQuiet(count: () => number): Promise<void> {
  for (let looks = 0; looks < 6; looks += 1) {
    const before = count();
    await new Promise((resume) => setTimeout(resume, 30));
    if (count() === before) return;
  }
}
