import type { Contestant, Question, Sample } from "../contest.js";
import { heapBytes } from "../costs.js";
import { type Candidate, candidates } from "./candidates.js";
import { BenchEtcd } from "./server.js";

const etcd = new BenchEtcd();

export const footprint: Question = {
  store: "etcd",
  name: "footprint",
  title: "memory for each lease that is held",
  about: "How much a held lease takes of the client's memory, and of the database.",
  unit: "client bytes/lease",
  better: "lower",
  rounds: 3,
  async contestants(isQuick) {
    const count = isQuick ? 200 : 2_000;
    const url = await etcd.start();
    return candidates.map((one): Contestant => {
      const { name, role } = one;
      return { name, role, round: () => ofHeld(one, url, count) };
    });
  },
  goals: () => [],
  close: () => etcd.stop(),
};

async function ofHeld({ name, open }: Candidate, url: string, count: number): Promise<Sample> {
  const locker = await open(url);
  await (await locker.acquire(name))();
  const [keysBefore, leasesBefore] = await etcd.contents();
  const heapBefore = heapBytes();
  const held = await Promise.all(
    Array.from({ length: count }, (_, index) => locker.acquire(`${name}:${index}`)),
  );
  const value = (heapBytes() - heapBefore) / count;
  const [keys, leases] = await etcd.contents();
  const more = {
    "keys/lease": (keys - keysBefore) / count,
    "etcd leases/lease": (leases - leasesBefore) / count,
  };
  await Promise.all(held.map((release) => release()));
  await locker.close();
  return { value, more };
}
