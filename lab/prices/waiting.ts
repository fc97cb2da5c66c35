import { setTimeout as pause } from "node:timers/promises";
import type { Contestant, Question, Sample } from "../../bench/contest.js";
import { startProxy } from "../../test/faults/proxy.js";
import { startEtcd } from "../../test/servers/etcd.js";
import { startRedis } from "../../test/servers/redis.js";
import {
  directHandoff,
  publishAndSubscribe,
  spin,
  type Waiter,
  watchAll,
  watchPredecessor,
} from "./ways-to-wait.js";

const WAITERS = 50;
const HELD_MS = 10;

/** How many requests the server has got so far. */
type Count = () => number | Promise<number>;

export const waiting: Question = {
  store: "lab",
  name: "waiting",
  title: "requests to the server per handoff",
  about: `${WAITERS} waiters with connections of their own; each holds the lock for ${HELD_MS} ms.`,
  unit: "requests/handoff",
  better: "lower",
  rounds: 3,
  contestants: () =>
    Promise.all([
      onRedis("spin, every 50 ms", spin),
      onRedis("publish and subscribe", publishAndSubscribe),
      onEtcd("watch the lock, all of them", watchAll),
      onEtcd("watch the predecessor", watchPredecessor),
      onRedis("direct handoff: Holdfast on Redis", directHandoff),
    ]),
  goals: () => [],
};

async function onRedis(name: string, open: (port: number) => Promise<Waiter>): Promise<Contestant> {
  const server = await startRedis();
  const proxy = await startProxy({ targetPort: server.port, framing: "resp" });
  let requests = 0;
  proxy.onRequest(() => {
    requests += 1;
    return undefined;
  });
  return {
    name,
    role: "peer",
    round: () =>
      handoffs(
        () => open(proxy.port),
        () => requests,
      ),
    async close() {
      await proxy.close();
      await server.close();
    },
  };
}

async function onEtcd(name: string, open: (url: string) => Promise<Waiter>): Promise<Contestant> {
  const server = await startEtcd();
  return {
    name,
    role: "peer",
    round: () =>
      handoffs(
        () => open(server.url),
        () => messagesTo(server.url),
      ),
    close: () => server.close(),
  };
}

/** The messages that an etcd has got: calls, and what is written into streams. */
async function messagesTo(url: string): Promise<number> {
  const metrics = await (await fetch(`${url}/metrics`)).text();
  const counts = metrics.matchAll(/^grpc_server_msg_received_total\{.* (\d+)$/gm);
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
}

/** All stand in line before the count begins; it ends when each has had its turn. */
async function handoffs(open: () => Promise<Waiter>, count: Count): Promise<Sample> {
  const all = await Promise.all(Array.from({ length: WAITERS + 1 }, open));
  const [first, ...others] = all;
  const release = await first?.acquire(() => {});
  const turns: Promise<void>[] = [];
  const inLine = others.map(
    (waiter) =>
      new Promise<void>((resolve, reject) => {
        turns.push(turnOf(waiter, resolve));
        turns.at(-1)?.catch(reject);
      }),
  );
  await Promise.all(inLine);
  const before = await settled(count);
  await release?.();
  await Promise.all(turns);
  const requests = (await count()) - before;
  await Promise.all(all.map((waiter) => waiter.close()));
  return { value: requests / WAITERS };
}

const LOOK_MS = 100;
const MAX_LOOKS = 20;

/**
 * The count when no request comes any more. A waiter is in line before its connection for messages
 * is ready, and the requests of a start are no part of a handoff. A way that spins never settles.
 */
async function settled(count: Count): Promise<number> {
  let last = await count();
  for (let looks = 0; looks < MAX_LOOKS; looks += 1) {
    await pause(LOOK_MS);
    const now = await count();
    if (now === last) return now;
    last = now;
  }
  return last;
}

async function turnOf(waiter: Waiter, onWaiting: () => void): Promise<void> {
  const release = await waiter.acquire(onWaiting);
  await pause(HELD_MS);
  await release();
}
