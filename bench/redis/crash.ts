import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Contestant, Question } from "../contest.js";
import { candidate, candidates } from "./candidates.js";
import { BenchRedis } from "./server.js";

const redis = new BenchRedis();
const HOLDER = fileURLToPath(new URL("./holder.js", import.meta.url));
const TTL_MS = 1_000;

/** A holder dies without a word: how long the lock stays with the dead. */
export const crash: Question = {
  store: "redis",
  name: "crash",
  title: `a holder is killed (ttl ${TTL_MS} ms), until the waiter has the lock`,
  unit: "ms",
  better: "lower",
  rounds: 9,
  startsFresh: true,
  takesLong: true,
  async contestants() {
    const port = await redis.start();
    return candidates
      .filter(({ role }) => role !== "floor")
      .map(({ name, role }): Contestant => ({ name, role, round: () => takeover(name, port) }));
  },
  goals(of) {
    const value = of("holdfast").median;
    const limitMs = TTL_MS + 50;
    return [{ text: `at most ${limitMs} ms`, value, isMet: value <= limitMs }];
  },
  close: () => redis.stop(),
};

async function takeover(name: string, port: number): Promise<{ value: number }> {
  const order = { candidate: name, port, lock: `${name}:crash`, ttlMs: TTL_MS };
  const holder = fork(HOLDER, [JSON.stringify(order)]);
  const locker = await candidate(name).open(port, TTL_MS);
  try {
    await once(holder, "message");
    const waiting = locker.acquire(order.lock);
    await new Promise((resume) => setTimeout(resume, 100));
    holder.kill("SIGKILL");
    const killedMs = performance.now();
    const release = await waiting;
    const value = performance.now() - killedMs;
    await release();
    return { value };
  } finally {
    holder.kill("SIGKILL");
    await locker.close();
  }
}
