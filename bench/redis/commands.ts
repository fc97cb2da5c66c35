import { startProxy } from "../../test/faults/proxy.js";
import type { Contestant, Question } from "../contest.js";
import { candidate } from "./candidates.js";
import { BenchRedis } from "./server.js";

const redis = new BenchRedis();

/** What a handoff costs the network, counted on the wire, with few and with many who wait. */
export const commands: Question = {
  store: "redis",
  name: "commands",
  title: "requests on the wire per contended handoff",
  unit: "requests",
  better: "lower",
  rounds: 3,
  async contestants(isQuick) {
    const port = await redis.start();
    const handoffs = isQuick ? 50 : 300;
    const counted = (name: string, role: Contestant["role"], waiting: number): Contestant => ({
      name: `${name}, ${waiting} wait`,
      role,
      round: () => countRequests(name, port, waiting, handoffs),
    });
    return [
      counted("holdfast strict", "holdfast", 2),
      counted("holdfast strict", "holdfast", 100),
      counted("redis-semaphore", "peer", 20),
      counted("redlock 4", "peer", 20),
    ];
  },
  goals(of) {
    return [2, 100].map((waiting) => {
      const value = of(`holdfast strict, ${waiting} wait`).median;
      // Now and then a client says that it lives: that is no part of a handoff, but counted here.
      const isMet = Math.round(value * 10) <= 20;
      return { text: `${waiting} wait: at most 2 per handoff, to a tenth`, value, isMet };
    });
  },
  close: () => redis.stop(),
};

async function countRequests(
  name: string,
  port: number,
  waiting: number,
  handoffs: number,
): Promise<{ value: number }> {
  await using proxy = await startProxy({ targetPort: port, framing: "resp" });
  let requests = 0;
  proxy.onRequest(() => {
    requests += 1;
    return undefined;
  });
  const locker = await candidate(name).open(proxy.port);
  const lastTurn = waiting + handoffs;
  let turns = 0;
  let requestsBefore = 0;
  let perHandoff = Number.NaN;
  await Promise.all(
    Array.from({ length: waiting }, async () => {
      // A task that got its turn stands behind again: asking is not part of the handoff.
      while (turns < lastTurn) {
        const release = await locker.acquire(name);
        turns += 1;
        if (turns === waiting) requestsBefore = requests;
        await new Promise((resume) => setTimeout(resume, 1));
        if (turns === lastTurn) perHandoff = (requests - requestsBefore) / handoffs;
        await release();
      }
    }),
  );
  await locker.close();
  // Each handoff of the steady state also has one request to stand in line again.
  return { value: perHandoff - 1 };
}
