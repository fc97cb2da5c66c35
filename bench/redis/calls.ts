import { startProxy } from "../../test/faults/proxy.js";
import type { Contestant, Question, Sample } from "../contest.js";
import { pairsAtOnce, pairsOf } from "../turns.js";
import { type Candidate, candidatesFor } from "./candidates.js";
import { BenchRedis } from "./server.js";

const redis = new BenchRedis();
const TASKS = 1_000;

export const calls: Question = {
  store: "redis",
  name: "calls",
  title: "requests on the wire per acquire and release, one at a time and 1,000 at once",
  about: "The cost of an uncontended pair for the network, one at a time and many at once.",
  unit: "requests/pair",
  better: "lower",
  rounds: 3,
  async contestants(isQuick) {
    const port = await redis.start();
    const pairs = isQuick ? 100 : 500;
    return candidatesFor(isQuick)
      .filter(({ name }) => name !== "holdfast strict")
      .map((one): Contestant => {
        const { name, role } = one;
        return { name, role, round: () => count(one, port, pairs) };
      });
  },
  goals(of) {
    const value = of("holdfast").median;
    const isMet = Math.round(value * 10) <= 20;
    return [{ text: "at most 2 for a pair, to a tenth", value, isMet }];
  },
  close: () => redis.stop(),
};

async function count({ name, open }: Candidate, port: number, pairs: number): Promise<Sample> {
  await using proxy = await startProxy({ targetPort: port, framing: "resp" });
  let requests = 0;
  proxy.onRequest(() => {
    requests += 1;
    return undefined;
  });
  const bytes = (): number => proxy.counters.requests.bytes + proxy.counters.replies.bytes;
  const locker = await open(proxy.port);
  // Connects, subscribes and loads its scripts.
  await pairsOf(locker, name, 3);
  const [requestsBefore, bytesBefore] = [requests, bytes()];
  await pairsOf(locker, name, pairs);
  const value = (requests - requestsBefore) / pairs;
  const perPair = (bytes() - bytesBefore) / pairs;
  const [requestsAlone, bytesAlone] = [requests, bytes()];
  await pairsAtOnce(locker, name, TASKS, 1);
  const more = {
    "bytes/pair": perPair,
    "requests/pair, 1,000 at once": (requests - requestsAlone) / TASKS,
    "bytes/pair, 1,000 at once": (bytes() - bytesAlone) / TASKS,
  };
  await locker.close();
  return { value, more };
}
