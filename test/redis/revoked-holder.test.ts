/**
 * A process that learns of the end of its grant only by a renewal gives it to no waiter of its own:
 * the store may have granted the lock to another process meanwhile.
 */
import { expect, test } from "vitest";
import type { Lease } from "../../src/lease/lease.js";
import { startProxy } from "../faults/proxy.js";
import { startRedis } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";
import { Trial } from "./trial.js";

const isHeld = ({ state }: Lease): boolean => state === "held";

test.concurrent.each([
  ["strict waiters", 3, { fairness: "strict" }],
  ["waiters with a longest hold", 3, { maxHoldMs: 60_000 }],
  ["waiters that take turns", 2, {}],
] as const)("%s do not hold by a grant that was revoked unheard", async (_title, places, given) => {
  await using server = await startRedis();
  await using proxy = await startProxy({ targetPort: server.port });
  await using trial = new Trial(server);
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
  await server.untilSubscribed(3);
  await first.release();
  const held = await Promise.race(waits);

  // From here on no push reaches P, while its own requests reach the store.
  proxy.refuse();
  await server.ask("CLIENT", "KILL", "TYPE", "pubsub");
  await server.untilSubscribed(2);
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
