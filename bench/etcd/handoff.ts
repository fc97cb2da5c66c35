import { once } from "node:events";
import { type Contestant, type Question, quantile, type Sample } from "../contest.js";
import { forked } from "../forked.js";
import { candidates } from "./candidates.js";
import { BenchEtcd } from "./server.js";
import type { Hold, Order } from "./turn-taker.js";

const etcd = new BenchEtcd();
const TURN_TAKER = new URL("./turn-taker.js", import.meta.url);
const RAW = "raw delete to watch event";
/** So much of all turns has to change the process: else it is not a handoff that is timed. */
const LEAST_CHANGES = 0.9;

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
      round: () => timeEvents({ candidate: "", url, forMs }),
    };
    const locking = candidates
      .filter(({ role }) => role !== "floor")
      .map(
        ({ name, role }): Contestant => ({
          name,
          role,
          round: () => timeTurns({ candidate: name, url, forMs }, role === "holdfast"),
        }),
      );
    return [...locking, raw];
  },
  goals(of) {
    const raw = of(RAW).median;
    const value = of("holdfast").median / raw;
    const text = "p50 at most 1.5 × a delete's event";
    return [{ text, value, isMet: value <= 1.5, line: 1.5 * raw }];
  },
  close: () => etcd.stop(),
};

type Task = Omit<Order, "task">;

async function timeTurns(task: Task, mustAlternate: boolean): Promise<Sample> {
  const order = { ...task, task: "lock" } as const;
  const [first, second] = (await together([order, order])) as [Hold[], Hold[]];
  const turns = [first, second]
    .flatMap((holds, who) => holds.map(([heldMs, releasedMs]) => ({ who, heldMs, releasedMs })))
    .sort((a, b) => a.heldMs - b.heldMs);
  const lags: number[] = [];
  turns.forEach((turn, index) => {
    const before = turns[index - 1];
    if (!before) return;
    if (turn.heldMs < before.releasedMs) throw new Error("two held the lock at the same time");
    if (turn.who !== before.who) lags.push(turn.heldMs - before.releasedMs);
  });
  // The first and the last turns have no neighbour to hand over to.
  const share = lags.length / Math.max(1, 2 * Math.min(first.length, second.length) - 2);
  if (mustAlternate && share < LEAST_CHANGES) throw new Error(`only ${share} changed the process`);
  return sample(lags);
}

/** The same way without a lock: one process deletes, the other is told. */
async function timeEvents(task: Task): Promise<Sample> {
  const [asked, seen] = (await together([
    { ...task, task: "delete" },
    { ...task, task: "watch" },
  ])) as [number[], number[]];
  return sample(seen.map((seenMs, index) => seenMs - (asked[index] ?? Number.NaN)));
}

/** The reports of all processes, which are started at one moment. */
async function together(orders: readonly Order[]): Promise<unknown[]> {
  const children = orders.map((order) => forked(TURN_TAKER, order));
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

function sample(lags: readonly number[]): Sample {
  if (lags.length === 0) throw new Error("the lock was never handed over");
  const more = { "p99 ms": quantile(lags, 0.99), handoffs: lags.length };
  return { value: quantile(lags, 0.5), more };
}
