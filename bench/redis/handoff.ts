import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { contend, inOrder } from "../contention.js";
import { type Contestant, type Question, quantile } from "../contest.js";
import type { Hold } from "../turns.js";
import { candidates } from "./candidates.js";
import { BenchRedis } from "./server.js";

const redis = new BenchRedis();
const CONTENDER = new URL("./contender.js", import.meta.url);
const ECHO = fileURLToPath(new URL("./publisher.js", import.meta.url));
const RAW = "raw PUBLISH to message";

/** Two processes take turns: from the call of release to the first statement of the next holder. */
export const handoff: Question = {
  store: "redis",
  name: "handoff",
  title: "between two processes, from release to the next holder",
  unit: "ms p50",
  better: "lower",
  rounds: 7,
  startsFresh: true,
  async contestants(isQuick) {
    const forMs = isQuick ? 150 : 2_000;
    const port = await redis.start();
    const locking = candidates
      .filter(({ role }) => role !== "floor")
      .map(
        ({ name, role }): Contestant => ({
          name,
          role,
          round: async () => {
            const order = { candidate: name, port, lock: name, workers: 1, forMs, holdMs: 3 };
            const holds = inOrder(await contend(order, 2, CONTENDER));
            return sample(handoffs(holds));
          },
        }),
      );
    return [...locking, rawMessage(port, forMs)];
  },
  goals(of) {
    const value = of("holdfast").median / of(RAW).median;
    return [{ text: "p50 at most 1.3 × a raw message", value, isMet: value <= 1.3 }];
  },
  close: () => redis.stop(),
};

/** The same way without a lock: one process publishes, the other hears it. */
function rawMessage(port: number, forMs: number): Contestant {
  return {
    name: RAW,
    role: "floor",
    round: async () => {
      const child = fork(ECHO, [JSON.stringify({ port, forMs })]);
      try {
        const [lags] = await once(child, "message");
        return sample(lags as number[]);
      } finally {
        child.kill("SIGKILL");
      }
    },
  };
}

/** Who takes the lock again after its own release hands nothing over. */
function handoffs(holds: readonly (readonly [number, Hold])[]): number[] {
  const gaps: number[] = [];
  for (let at = 1; at < holds.length; at += 1) {
    const [before, [, , releasedMs]] = holds[at - 1] as readonly [number, Hold];
    const [worker, [, heldMs]] = holds[at] as readonly [number, Hold];
    if (worker !== before) gaps.push(heldMs - releasedMs);
  }
  return gaps;
}

function sample(gaps: readonly number[]): { value: number; more: Record<string, number> } {
  if (gaps.length === 0) throw new Error("the lock was never handed over");
  return {
    value: quantile(gaps, 0.5),
    more: { "p99 ms": quantile(gaps, 0.99), handoffs: gaps.length },
  };
}
