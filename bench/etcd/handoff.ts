import { once } from "node:events";
import { type Contention, contend, handedOver, lags, startForked } from "../contention.js";
import type { Contestant, Question, Sample } from "../contest.js";
import { forked } from "../forked.js";
import { atMost } from "../goals.js";
import { candidates } from "./candidates.js";
import type { Order as ContenderOrder } from "./contender.js";
import type { Order } from "./key-deleter.js";
import { BenchEtcd } from "./server.js";

const etcd = new BenchEtcd();
const CONTENDER = new URL("./contender.js", import.meta.url);
const DELETER = new URL("./key-deleter.js", import.meta.url);
const RAW = "raw delete to watch event";
/** So much of all turns has to change the process: else it is not a handoff that is timed. */
const MIN_CHANGES = 0.9;
/** A holder keeps the lock for so long, so that the other is surely waiting. */
const HOLD_MS = 5;

export const handoff: Question = {
  store: "etcd",
  name: "handoff",
  title: "between two processes, from release to the next holder",
  about:
    "Two processes take turns: from the call of release to the first statement of the " +
    "next holder.",
  unit: "ms p50",
  better: "lower",
  rounds: 7,
  startsFresh: true,
  async contestants(isQuick) {
    const forMs = isQuick ? 500 : 2_500;
    const url = await etcd.start();
    const raw: Contestant = {
      name: RAW,
      role: "floor",
      round: () => timeEvents({ url, forMs, pauseMs: HOLD_MS }),
    };
    const locking = candidates
      .filter(({ role }) => role !== "floor")
      .map(
        ({ name, role }): Contestant => ({
          name,
          role,
          round: async () => {
            const shape = { lock: name, workers: 1, forMs, holdMs: [HOLD_MS] };
            const order: ContenderOrder = { candidate: name, url, ...shape };
            const taken = await contend(order, 2, startForked(CONTENDER, order), etcd);
            return handedOver(role === "holdfast" ? assertAlternating(taken) : taken);
          },
        }),
      );
    return [...locking, raw];
  },
  goals: (of) => [atMost(1.5, "a delete's event, p50", of("holdfast"), of(RAW))],
  close: () => etcd.stop(),
};

/** Time between holders is a handoff only if the lock went from one process to the other. */
function assertAlternating(contention: Contention): Contention {
  const [first = 0, second = 0] = contention.holds.map((own) => own.length);
  const { more } = handedOver(contention);
  // The first and the last turns have no neighbour to hand over to.
  const share = (more?.handoffs ?? 0) / Math.max(1, 2 * Math.min(first, second) - 2);
  if (share < MIN_CHANGES) throw new Error(`only ${share} changed the process`);
  return contention;
}

/** The same way without a lock: one process deletes, the other is told. */
async function timeEvents(task: Omit<Order, "task">): Promise<Sample> {
  const [asked, seen] = (await together([
    { ...task, task: "delete" },
    { ...task, task: "watch" },
  ])) as [number[], number[]];
  return lags(seen.map((seenMs, index) => seenMs - (asked[index] ?? Number.NaN)));
}

/** The reports of all processes, which are started at one moment. */
async function together(orders: readonly Order[]): Promise<unknown[]> {
  const children = orders.map((order) => forked(DELETER, order));
  const limit = AbortSignal.timeout(30_000);
  try {
    await Promise.all(children.map((child) => once(child, "message", { signal: limit })));
    const reports = children.map((child) => once(child, "message", { signal: limit }));
    for (const child of children) child.send("go");
    return (await Promise.all(reports)).map(([report]) => report);
  } finally {
    for (const child of children) child.kill("SIGKILL");
  }
}
