import type { Contestant, Question, Sample } from "../contest.js";
import { measured } from "../costs.js";
import { candidate, PEER } from "./candidates.js";
import { BenchEtcd } from "./server.js";

const etcd = new BenchEtcd();
const WAITERS = 50;
const LOCK = "waited for";

export const waiters: Question = {
  store: "etcd",
  name: "waiters",
  title: "requests to etcd per handoff, 50 wait",
  about: "The cost of a handoff for the cluster, counted by etcd itself, with many waiters.",
  unit: "requests",
  better: "lower",
  rounds: 3,
  async contestants(isQuick) {
    const url = await etcd.start();
    const counted = (name: string, role: Contestant["role"], clients: number): Contestant => ({
      name: `${name}, ${clients} client${clients === 1 ? "" : "s"}`,
      role,
      round: () => countRequests(name, url, clients),
    });
    return [
      counted("holdfast", "holdfast", 1),
      counted("holdfast", "holdfast", 5),
      counted("holdfast", "holdfast", 50),
      ...(isQuick ? [] : [counted(PEER, "peer", 5)]),
    ];
  },
  goals(_, standings) {
    return standings
      .filter(({ role }) => role === "holdfast")
      .map(({ name, median: value }) => ({
        text: `${name}: at most 3 requests per handoff`,
        value,
        isMet: value <= 3,
      }));
  },
  close: () => etcd.stop(),
};

/** All stand in line before the count begins; it ends when each has had its turn. */
async function countRequests(name: string, url: string, clients: number): Promise<Sample> {
  const lockers = await Promise.all(
    Array.from({ length: clients }, () => candidate(name).open(url)),
  );
  const releaseFirst = await lockers[0]?.acquire(LOCK);
  const turns = Array.from({ length: WAITERS }, async (_, index) => {
    const release = await lockers[index % clients]?.acquire(LOCK);
    await release?.();
  });
  // Wait until no request comes any more, or for a moment where contestants poll.
  let before = await etcd.requests();
  for (let looks = 0; looks < 10; looks += 1) {
    await new Promise((resume) => setTimeout(resume, 50));
    const now = await etcd.requests();
    if (now === before && now > WAITERS) break;
    before = now;
  }
  const handOver = async (): Promise<void> => {
    await releaseFirst?.();
    await Promise.all(turns);
  };
  const costs = await measured(etcd, WAITERS, handOver, "handoff");
  await Promise.all(lockers.map((locker) => locker.close()));
  const { "requests/handoff": value = Number.NaN, ...more } = costs.more;
  return { value, more };
}
