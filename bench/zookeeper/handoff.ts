import { once } from "node:events";
import { contend, handedOver, lags, startForked } from "../contention.js";
import type { Contestant, Question, Sample } from "../contest.js";
import { forked } from "../forked.js";
import { atMost } from "../goals.js";
import { candidates } from "./candidates.js";
import type { Order as ContenderOrder } from "./contender.js";
import { BenchZookeeper } from "./server.js";
import type { Order } from "./znode-deleter.js";

const zookeeper = new BenchZookeeper();
const CONTENDER = new URL("./contender.js", import.meta.url);
const DELETER = new URL("./znode-deleter.js", import.meta.url);
const RAW = "raw delete to watch event";
/** A holder keeps the lock for so long, so that the other is surely waiting. */
const HOLD_MS = 5;

export const handoff: Question = {
  store: "zookeeper",
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
    const forMs = isQuick ? 1_000 : 2_500;
    const port = await zookeeper.start();
    const raw: Contestant = {
      name: RAW,
      role: "floor",
      round: () => timeEvents({ port, count: forMs / HOLD_MS / 2, pauseMs: HOLD_MS }),
    };
    const locking = candidates
      .filter(({ role }) => role !== "floor")
      .map(
        ({ name, role }): Contestant => ({
          name,
          role,
          round: async () => {
            const shape = { lock: name, workers: 1, forMs, holdMs: [HOLD_MS] };
            const order: ContenderOrder = { candidate: name, port, ...shape };
            return handedOver(await contend(order, 2, startForked(CONTENDER, order), zookeeper));
          },
        }),
      );
    return [...locking, raw];
  },
  goals: (of) => [atMost(2.6, "a delete's event, p50", of("holdfast"), of(RAW))],
  close: () => zookeeper.stop(),
};

/** The same way without a lock: one process deletes, the other is told. */
async function timeEvents(task: Omit<Order, "task">): Promise<Sample> {
  const children = (["delete", "watch"] as const).map((one) =>
    forked(DELETER, { ...task, task: one }),
  );
  const limit = AbortSignal.timeout(30_000);
  try {
    await Promise.all(children.map((child) => once(child, "message", { signal: limit })));
    const reports = children.map((child) => once(child, "message", { signal: limit }));
    for (const child of children) child.send("go");
    const [[asked], [seen]] = (await Promise.all(reports)) as [[number[]], [number[]]];
    return lags(seen.map((seenMs, index) => seenMs - (asked[index] ?? Number.NaN)));
  } finally {
    for (const child of children) child.kill("SIGKILL");
  }
}
