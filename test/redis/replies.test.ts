/**
 * One network fault at one command: each kind of fault, each kind of command, with a client that
 * resends by itself (ioredis) and one that does not.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { Holdfast } from "../../src/api/holdfast.js";
import { LeaseLostError, StoreError } from "../../src/errors/index.js";
import type { Lease } from "../../src/lease/lease.js";
import type { AcquireOptions } from "../../src/options/options.js";
import { chooser } from "../faults/chosen-request.js";
import { holdRequest } from "../faults/late-copy.js";
import { loseReply, loseRequest } from "../faults/message-loss.js";
import { type FaultProxy, startProxy } from "../faults/proxy.js";
import type { Verdict } from "../faults/proxy-lane.js";
import { Stopwatch } from "../fixtures/stopwatch.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";
import { type Library, libraries } from "./clients.js";
import { carries, type Operation, Trial } from "./trial.js";

vi.setConfig({ maxConcurrency: 8 });

/** Short for leases that must be lost; long for leases that a busy machine must keep. */
const TTL_MS = 600;
const OFFER_MS = 300;
const KEPT_TTL_MS = 4_000;
const KEPT_OFFER_MS = 1_500;
/** Enough for a reconnect and a repeated command. */
const SOON_MS = 2_000;

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server?.close());

type Strike = (proxy: FaultProxy, operation: Operation) => { readonly struck: Promise<unknown> };

/** Applies `fate` to the reply of the first such command. */
function onReply(fate: (proxy: FaultProxy, link: Parameters<Hook>[1]) => Verdict): Strike {
  return (proxy, operation) => {
    const chosen = chooser({ match: carries(operation) });
    const struck = new Promise<void>((resolve) => {
      const remove = proxy.onReply((reply, link) => {
        if (!reply.to || !chosen(reply.to)) return undefined;
        remove();
        resolve();
        return fate(proxy, link);
      });
    });
    return { struck };
  };
}
type Hook = Parameters<FaultProxy["onReply"]>[0];

/** Faults after which the client reconnects at once. */
const breaks: Record<string, Strike> = {
  "is lost": (proxy, operation) => loseRequest(proxy, { match: carries(operation) }),
  "takes effect, its reply is lost": (proxy, operation) =>
    loseReply(proxy, { match: carries(operation) }),
  "takes effect, the connection breaks within its reply": onReply((_proxy, link) => {
    link.replies.resetAfter(3);
    return "pass";
  }),
};

/** Faults that last until `heal`, or longer than a lease. */
const silences: Record<string, Strike> = {
  "takes effect, then the server falls silent": (proxy, operation) =>
    loseReply(proxy, { match: carries(operation), how: "drop" }),
  "takes effect, its reply comes after the ttl": onReply(() => ({ delayMs: 2 * TTL_MS })),
  "meets a network that is cut in both directions": (proxy, operation) => {
    const chosen = chooser({ match: carries(operation) });
    const struck = new Promise<void>((resolve) => {
      const remove = proxy.onRequest((request) => {
        if (!chosen(request)) return undefined;
        remove();
        proxy.blackhole("both");
        resolve();
        return "drop";
      });
    });
    return { struck };
  },
};

/** A lock, a client behind the proxy, and a client without one. */
interface Scene {
  readonly trial: Trial;
  readonly proxy: FaultProxy;
  readonly struck: Holdfast;
  readonly other: Holdfast;
}

async function underTrial(
  library: Library,
  offerMs: number,
  act: (scene: Scene) => Promise<void>,
): Promise<void> {
  const proxy = await startProxy({ targetPort: server.port, framing: "resp" });
  const trial = new Trial(server);
  try {
    const struck = await trial.open(library, proxy.port, { offerMs });
    const other = trial.ioredis(server.port, { offerMs });
    await trial.turn(struck);
    await trial.turn(other);
    await act({ trial, proxy, struck, other });
    await proxy.heal();
    await trial.end(other, TTL_MS + SOON_MS);
  } finally {
    await proxy.heal();
    await trial.close();
    await proxy.close();
  }
}

const SHORT = { ttlMs: TTL_MS, storeTimeoutMs: 2 * TTL_MS };
const KEPT = { ttlMs: KEPT_TTL_MS };

/** Checks that the lease was renewed or confirmed: it has more time than without. */
async function staysHeld(lease: Lease, atLeastMs: number): Promise<void> {
  const what = `more than ${atLeastMs} ms are left`;
  const isOver = () => lease.state !== "held" || lease.remainingMs() > atLeastMs;
  await waitUntil(isOver, { what, timeoutMs: SOON_MS });
  expect(lease.signal.reason).toBeUndefined();
}

/** Checks that the holder is told of the loss before the next waiter acquires. */
async function isLost({ trial, other }: Scene, lease: Lease): Promise<void> {
  const next = trial.acquire(other, { waitMs: SOON_MS });
  await (await next).release();
  expect(lease.signal.reason).toBeInstanceOf(LeaseLostError);
  expect(lease.signal.reason).toMatchObject({ reason: "expired" });
}

/** Hands the lock off to a waiter, with the fault at its confirm. */
async function handOver(
  { trial, struck, other, proxy }: Scene,
  strike: Strike,
  options: AcquireOptions,
): Promise<unknown> {
  const held = await trial.acquire(other);
  const waiting = trial.acquire(struck, options).catch((error: unknown) => error);
  await trial.waiting(other, 1);
  const fault = strike(proxy, "confirm");
  await held.release();
  await fault.struck;
  return waiting;
}

for (const library of libraries) {
  describe.concurrent(`${library}: a command`, () => {
    for (const [title, strike] of Object.entries(breaks)) {
      test(`acquire ${title}: it is granted`, () =>
        underTrial(library, KEPT_OFFER_MS, async ({ trial, struck, proxy }) => {
          const fault = strike(proxy, "acquire");
          const lease = await trial.acquire(struck, KEPT);
          await fault.struck;
          await staysHeld(lease, KEPT_TTL_MS / 2);
          expect(await lease.release()).toBe(true);
        }));

      test(`confirm ${title}: the lease outlives its offer`, () =>
        underTrial(library, KEPT_OFFER_MS, async (scene) => {
          // Without renewals, which would hide a missing confirm.
          const options = { ...KEPT, renew: false };
          const lease = (await handOver(scene, strike, options)) as Lease;
          await staysHeld(lease, KEPT_OFFER_MS);
          expect(await lease.release()).toBe(true);
        }));

      test(`renew ${title}: it is sent again`, () =>
        underTrial(library, KEPT_OFFER_MS, async ({ trial, struck, proxy }) => {
          const lease = await trial.acquire(struck, KEPT);
          const fault = strike(proxy, "renew");
          // Its outcome may be unknown; the lease renewer repeats it.
          await lease.renew(2 * KEPT_TTL_MS).catch(() => {});
          await fault.struck;
          await staysHeld(lease, KEPT_TTL_MS);
          expect(await lease.release()).toBe(true);
        }));

      test(`release ${title}: it is sent again, and the next waiter acquires at once`, () =>
        underTrial(library, KEPT_OFFER_MS, async ({ trial, struck, other, proxy }) => {
          const lease = await trial.acquire(struck);
          const fault = strike(proxy, "release");
          expect(await lease.release()).toBe(true);
          await fault.struck;
          await trial.turn(other, { waitMs: SOON_MS });
        }));
    }

    for (const [title, strike] of Object.entries(silences)) {
      test(`acquire ${title}: granted again, or a clear error`, () =>
        underTrial(library, OFFER_MS, async ({ trial, struck, proxy }) => {
          const fault = strike(proxy, "acquire");
          const outcome = await trial.acquire(struck, SHORT).catch((error: unknown) => error);
          await fault.struck;
          if (outcome instanceof StoreError) {
            expect(outcome).toMatchObject({ outcome: "unknown", lockName: trial.name });
            expect(outcome.message).toContain("silent");
          } else await (outcome as Lease).release();
        }));

      test(`confirm ${title}: the lease ends with the offer`, () =>
        underTrial(library, OFFER_MS, async (scene) => {
          const outcome = await handOver(scene, strike, SHORT);
          // A push without proof of its age waits for a reply, which comes late or never.
          if (outcome instanceof StoreError) return;
          const lease = outcome as Lease;
          if (lease.remainingMs() > OFFER_MS) await lease.release();
          else await isLost(scene, lease);
        }));

      test(`renew ${title}: the holder is told of the loss in time`, () =>
        underTrial(library, OFFER_MS, async (scene) => {
          const lease = await scene.trial.acquire(scene.struck, SHORT);
          const { struck } = strike(scene.proxy, "renew");
          // At once: on a busy machine the lease may end before its automatic renewal.
          lease.renew().catch(() => {});
          await struck;
          await isLost(scene, lease);
        }));

      test(`release ${title}: it does not throw, and ends before the lease`, () =>
        underTrial(library, OFFER_MS, async ({ trial, struck, proxy }) => {
          const lease = await trial.acquire(struck, SHORT);
          const fault = strike(proxy, "release");
          const stopwatch = new Stopwatch();
          expect(await lease.release()).toBe(true);
          await fault.struck;
          stopwatch.expectLessThan(2 * TTL_MS);
        }));
    }

    test("whose late copy comes after the release finds a tombstone", () =>
      underTrial(library, OFFER_MS, async ({ trial, struck, other, proxy }) => {
        const held = holdRequest(proxy, { match: carries("acquire") });
        const acquiring = trial.acquire(struck, { ttlMs: 3_000 });
        await held.caught;
        // The client repeats the request, and the copy overtakes the original.
        proxy.reset();
        await (await acquiring).release();
        const reply = await held.deliver();
        expect(String((reply as string[])[1])).toBe("E");
        expect((await other.inspect(trial.name)).holders).toEqual([]);
      }));

    test("whose late copy comes after its latest time is refused", () =>
      underTrial(library, OFFER_MS, async ({ trial, struck, other, proxy }) => {
        const held = holdRequest(proxy, { match: carries("acquire") });
        const options = { ttlMs: TTL_MS, storeTimeoutMs: 100 };
        await expect(trial.acquire(struck, options)).rejects.toThrow(StoreError);
        proxy.reset();
        // The tombstone is gone, so only the latest time protects the lock.
        await trial.turn(other);
        await sleep(20);
        expect(String(((await held.deliver()) as string[])[1])).toBe("L");
        expect((await other.inspect(trial.name)).holders).toEqual([]);
      }));
  });
}
