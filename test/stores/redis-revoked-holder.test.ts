/**
 * A process that learns of the end of its grant only by a renewal gives it to no waiter of its own:
 * the store may have granted the lock to another process meanwhile.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { Lease } from "../../src/lease/lease.js";
import { type FaultProxy, startProxy } from "../faults/proxy.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";
import { Trial } from "./redis-trial.js";

let server: RedisServer;
let proxy: FaultProxy;
let trial: Trial;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server?.[Symbol.asyncDispose]());
beforeEach(async () => {
  proxy = await startProxy({ targetPort: server.port });
  trial = new Trial(server);
});
afterEach(async () => {
  await trial.close();
  await proxy[Symbol.asyncDispose]();
});

async function untilSubscribed(clients: number): Promise<void> {
  const count = async (): Promise<number> => {
    const text = String(await server.ask("CLIENT", "LIST", "TYPE", "pubsub"));
    return text.split("\n").filter((line) => line.includes("addr=")).length;
  };
  await waitUntil(async () => (await count()) === clients, { what: `${clients} subscribers` });
}

const isHeld = ({ state }: Lease): boolean => state === "held";

test.each([
  ["strict waiters", 3, { fairness: "strict" }],
  ["waiters with a longest hold", 3, { maxHoldMs: 60_000 }],
  ["waiters that take turns", 2, {}],
] as const)("%s do not hold by a grant that was revoked unheard", async (_title, places, given) => {
  const options = { ttlMs: 30_000, waitMs: 30_000, ...given };
  const direct = () => trial.ioredis(server.port);
  const [a, p, c] = [direct(), trial.ioredis(proxy.port), direct()];
  const untilWaiting = (count: number) =>
    waitUntil(async () => (await a.inspect("m")).waiters.length === count, { what: "waiters" });

  const first = await a.mutex("m").acquire(options);
  const leases: Lease[] = [];
  const waits = [0, 1, 2].map(async () => {
    const lease = await p.mutex("m").acquire(options);
    leases.push(lease);
    return lease;
  });
  await untilWaiting(places);
  const other = c.mutex("m").acquire(options);
  await untilWaiting(places + 1);
  // A waiter that cannot be reached would be passed over.
  await untilSubscribed(3);
  await first.release();
  const held = await Promise.race(waits);

  // From here on no push reaches P, while its own requests reach the store.
  proxy.refuse();
  await server.ask("CLIENT", "KILL", "TYPE", "pubsub");
  await untilSubscribed(2);
  expect(await a.revoke("m", { token: held.token, reason: "stuck" })).toBe(true);
  const granted = await other;
  await waitUntil(async () => !isHeld(held), { what: "a renewal that is answered" });
  // A waiter that is given the dead grant gets it in that same turn of the event loop.
  await new Promise((resume) => setImmediate(resume));
  expect(leases.filter(isHeld)).toEqual([]);
  expect(isHeld(granted)).toBe(true);
  expect(granted.token).toBeGreaterThan(held.token);

  await granted.release();
  await proxy.heal();
  await Promise.all(waits.map(async (wait) => (await wait).release()));
});
