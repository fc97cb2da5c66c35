/** How much memory a held lease and a waiter take, on both sides. */
import type { Contestant, Question, Sample } from "../contest.js";
import { heapBytes } from "../costs.js";
import { type Candidate, candidate, candidatesFor } from "./candidates.js";
import { BenchRedis } from "./server.js";

const redis = new BenchRedis();

export const heldFootprint: Question = {
  store: "redis",
  name: "footprint-held",
  title: "memory for each lease that is held",
  about: "Many names are held at once; the memory of both sides, less that without them.",
  unit: "server bytes/lease",
  better: "lower",
  rounds: 3,
  async contestants(isQuick) {
    const count = isQuick ? 1_000 : 20_000;
    const port = await redis.start();
    return candidatesFor(isQuick)
      .filter(({ name }) => name !== "holdfast strict")
      .map((one): Contestant => {
        const { name, role } = one;
        return { name, role, round: () => ofHeld(one, port, count) };
      });
  },
  goals: () => [],
  close: () => redis.stop(),
};

export const waitingFootprint: Question = {
  store: "redis",
  name: "footprint-waiting",
  title: "memory for each task that waits for one name",
  about: "Many tasks wait for one name; the memory of both sides, less that without them.",
  unit: "client bytes/waiter",
  better: "lower",
  rounds: 3,
  takesLong: true,
  async contestants(isQuick) {
    const many = isQuick ? 1_000 : 10_000;
    // With more clients that poll, the server would not answer any more.
    const few = isQuick ? 50 : 200;
    const port = await redis.start();
    const waiting = (name: string, count: number): Contestant => {
      const one = candidate(name);
      const title = `${name}, ${count.toLocaleString("en")} wait`;
      return { name: title, role: one.role, round: () => ofWaiting(one, port, count) };
    };
    return [
      waiting("holdfast", many),
      waiting("holdfast strict", many),
      waiting("redis-semaphore", few),
      waiting("redlock 4", few),
    ];
  },
  goals: () => [],
  close: () => redis.stop(),
};

async function ofHeld({ open }: Candidate, port: number, count: number): Promise<Sample> {
  const locker = await open(port);
  await (await locker.acquire("warm"))();
  const [serverBefore, heapBefore] = [await serverBytes(), heapBytes()];
  const held = await Promise.all(
    Array.from({ length: count }, (_, index) => locker.acquire(`held:${index}`)),
  );
  const value = ((await serverBytes()) - serverBefore) / count;
  const more = { "client bytes/lease": (heapBytes() - heapBefore) / count };
  await Promise.all(held.map((release) => release()));
  await locker.close();
  return { value, more };
}

async function ofWaiting({ name, open }: Candidate, port: number, count: number): Promise<Sample> {
  const locker = await open(port);
  const releaseFirst = await locker.acquire(name);
  const [keysBefore, heapBefore] = [await keyBytes(), heapBytes()];
  const turns = Array.from({ length: count }, async () => {
    const release = await locker.acquire(name);
    await release();
  });
  await untilSteady();
  const more = { "server bytes/waiter": ((await keyBytes()) - keysBefore) / count };
  const value = (heapBytes() - heapBefore) / count;
  await releaseFirst();
  await Promise.all(turns);
  await locker.close();
  return { value, more };
}

/** All memory but that of connections: their buffers come and go. */
async function serverBytes(): Promise<number> {
  const memory = await redis.server.info("memory");
  return Number(memory.used_memory) - Number(memory.mem_clients_normal);
}

/** The memory of the few keys of one lock. */
async function keyBytes(): Promise<number> {
  const keys = (await redis.server.ask("KEYS", "*")) as string[];
  const sizes = keys.map((key) => redis.server.ask("MEMORY", "USAGE", key, "SAMPLES", 0));
  return (await Promise.all(sizes)).reduce<number>((sum, size) => sum + Number(size), 0);
}

/** Waits until all are in the queue; a contestant that polls has no queue, and gets a moment. */
async function untilSteady(): Promise<void> {
  for (let before = -1, now = await keyBytes(); now !== before; now = await keyBytes()) {
    before = now;
    await new Promise((resume) => setTimeout(resume, 200));
  }
}
