/**
 * What becomes of a lock when the network strikes at one command: with each kind of fault, at each
 * kind of command, by a client that resends by itself (ioredis) and by one that does not.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { LeaseLostError, StoreError } from "../../src/errors.js";
import type { Holdfast } from "../../src/holdfast.js";
import type { Lease } from "../../src/lease/lease.js";
import type { AcquireOptions } from "../../src/options.js";
import { chooser } from "../faults/chosen-request.js";
import { holdRequest } from "../faults/late-copy.js";
import { loseReply, loseRequest } from "../faults/message-loss.js";
import { type FaultProxy, startProxy } from "../faults/proxy.js";
import type { Verdict } from "../faults/proxy-lane.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";
import { carries, type Operation, Trial } from "./redis-trial.js";

vi.setConfig({ maxConcurrency: 8 });

/** What must be lost soon is short; what must be kept leaves a busy machine its time. */
const TTL_MS = 600;
const OFFER_MS = 300;
const KEPT_TTL_MS = 4_000;
const KEPT_OFFER_MS = 1_500;
/** A client that reconnects, a command that is repeated: more than enough for both. */
const SOON_MS = 2_000;

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server?.close());

type Open = (trial: Trial, port: number, offerMs: number) => Promise<Holdfast>;

const libraries: Record<string, Open> = {
  ioredis: async (trial, port, offerMs) => trial.ioredis(port, { offerMs }),
  "node-redis": (trial, port, offerMs) => trial.nodeRedis(port, { offerMs }),
};

type Strike = (proxy: FaultProxy, operation: Operation) => { readonly struck: Promise<unknown> };

/** Has the reply to the first such command meet its fate. */
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

/** After these the client has a connection again at once. */
const breaks: Record<string, Strike> = {
  "is lost on its way": (proxy, operation) => loseRequest(proxy, { match: carries(operation) }),
  "takes effect, its reply is lost": (proxy, operation) =>
    loseReply(proxy, { match: carries(operation) }),
  "takes effect, the connection breaks within its reply": onReply((_proxy, link) => {
    link.replies.resetAfter(3);
    return "pass";
  }),
};

/** These last until somebody heals the network, or for longer than a lease. */
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

/** A lock, one who is struck behind the proxy, and one who is not. */
interface Scene {
  readonly trial: Trial;
  readonly proxy: FaultProxy;
  readonly struck: Holdfast;
  readonly other: Holdfast;
}

async function underTrial(
  open: Open,
  offerMs: number,
  act: (scene: Scene) => Promise<void>,
): Promise<void> {
  const proxy = await startProxy({ targetPort: server.port, framing: "resp" });
  const trial = new Trial(server);
  try {
    const struck = await open(trial, proxy.port, offerMs);
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

/** It was renewed or confirmed: more is left than could be without. */
async function staysHeld(lease: Lease, atLeastMs: number): Promise<void> {
  const what = `more than ${atLeastMs} ms are left`;
  const isOver = () => lease.state !== "held" || lease.remainingMs() > atLeastMs;
  await waitUntil(isOver, { what, timeoutMs: SOON_MS });
  expect(lease.signal.reason).toBeUndefined();
}

/** Its loss is told in time: before the one who waits for it gets it, which the trial checks. */
async function isLost({ trial, other }: Scene, lease: Lease): Promise<void> {
  const next = trial.acquire(other, { waitMs: SOON_MS });
  await (await next).release();
  expect(lease.signal.reason).toBeInstanceOf(LeaseLostError);
  expect(lease.signal.reason).toMatchObject({ reason: "expired" });
}

/** One who waits and is served by a handoff; the fault strikes at its confirm. */
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

for (const [library, open] of Object.entries(libraries)) {
  describe.concurrent(`${library}: a command`, () => {
    for (const [title, strike] of Object.entries(breaks)) {
      test(`acquire ${title}: it is granted all the same`, () =>
        underTrial(open, KEPT_OFFER_MS, async ({ trial, struck, proxy }) => {
          const fault = strike(proxy, "acquire");
          const lease = await trial.acquire(struck, KEPT);
          await fault.struck;
          await staysHeld(lease, KEPT_TTL_MS / 2);
          expect(await lease.release()).toBe(true);
        }));

      test(`confirm ${title}: the lease outlives its offer`, () =>
        underTrial(open, KEPT_OFFER_MS, async (scene) => {
          // Without renewals, which would hide that it is never confirmed.
          const options = { ...KEPT, renew: false };
          const lease = (await handOver(scene, strike, options)) as Lease;
          await staysHeld(lease, KEPT_OFFER_MS);
          expect(await lease.release()).toBe(true);
        }));

      test(`renew ${title}: it is sent again`, () =>
        underTrial(open, KEPT_OFFER_MS, async ({ trial, struck, proxy }) => {
          const lease = await trial.acquire(struck, KEPT);
          const fault = strike(proxy, "renew");
          // Its answer may be that nobody knows; the keeper goes on with it.
          await lease.renew(2 * KEPT_TTL_MS).catch(() => {});
          await fault.struck;
          await staysHeld(lease, KEPT_TTL_MS);
          expect(await lease.release()).toBe(true);
        }));

      test(`release ${title}: it is sent again, the next goes on at once`, () =>
        underTrial(open, KEPT_OFFER_MS, async ({ trial, struck, other, proxy }) => {
          const lease = await trial.acquire(struck);
          const fault = strike(proxy, "release");
          expect(await lease.release()).toBe(true);
          await fault.struck;
          await trial.turn(other, { waitMs: SOON_MS });
        }));
    }

    for (const [title, strike] of Object.entries(silences)) {
      test(`acquire ${title}: granted anew, or a clear error`, () =>
        underTrial(open, OFFER_MS, async ({ trial, struck, proxy }) => {
          const fault = strike(proxy, "acquire");
          const outcome = await trial.acquire(struck, SHORT).catch((error: unknown) => error);
          await fault.struck;
          if (outcome instanceof StoreError) {
            expect(outcome).toMatchObject({ outcome: "unknown", lockName: trial.name });
            expect(outcome.message).toContain("silent");
          } else await (outcome as Lease).release();
        }));

      test(`confirm ${title}: belief ends with the offer`, () =>
        underTrial(open, OFFER_MS, async (scene) => {
          const outcome = await handOver(scene, strike, SHORT);
          // A push that is not proven fresh waits for an answer, which comes late or never.
          if (outcome instanceof StoreError) return;
          const lease = outcome as Lease;
          if (lease.remainingMs() > OFFER_MS) await lease.release();
          else await isLost(scene, lease);
        }));

      test(`renew ${title}: the loss is told in time`, () =>
        underTrial(open, OFFER_MS, async (scene) => {
          const lease = await scene.trial.acquire(scene.struck, SHORT);
          const { struck } = strike(scene.proxy, "renew");
          // At once: on a busy machine the lease may end before it is renewed by itself.
          lease.renew().catch(() => {});
          await struck;
          await isLost(scene, lease);
        }));

      test(`release ${title}: it does not throw, nor outlast the lease`, () =>
        underTrial(open, OFFER_MS, async ({ trial, struck, proxy }) => {
          const lease = await trial.acquire(struck, SHORT);
          const fault = strike(proxy, "release");
          const startMs = performance.now();
          expect(await lease.release()).toBe(true);
          await fault.struck;
          expect(performance.now() - startMs).toBeLessThan(2 * TTL_MS);
        }));
    }

    test("that comes once more after its lock was released finds a tombstone", () =>
      underTrial(open, OFFER_MS, async ({ trial, struck, other, proxy }) => {
        const held = holdRequest(proxy, { match: carries("acquire") });
        const acquiring = trial.acquire(struck, { ttlMs: 3_000 });
        await held.caught;
        // The client believes that it was lost, and its next try is quicker.
        proxy.reset();
        await (await acquiring).release();
        const reply = await held.deliver();
        expect(String((reply as string[])[1])).toBe("E");
        expect((await other.inspect(trial.name)).holders).toEqual([]);
      }));

    test("that comes once more when its time is over is refused", () =>
      underTrial(open, OFFER_MS, async ({ trial, struck, other, proxy }) => {
        const held = holdRequest(proxy, { match: carries("acquire") });
        const options = { ttlMs: TTL_MS, storeTimeoutMs: 100 };
        await expect(trial.acquire(struck, options)).rejects.toThrow(StoreError);
        proxy.reset();
        // From here on only the time protects: what it left behind is gone, too.
        await trial.turn(other);
        await sleep(20);
        expect(String(((await held.deliver()) as string[])[1])).toBe("L");
        expect((await other.inspect(trial.name)).holders).toEqual([]);
      }));
  });
}
