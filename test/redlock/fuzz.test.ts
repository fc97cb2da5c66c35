/**
 * Garbage in keys, messages and replies of nodes. It ends the call that reads it, or is ignored. No
 * call hangs, no error is unhandled, and locks work again when the garbage is gone.
 */

import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Holdfast } from "../../src/api/holdfast.js";
import { HoldfastError } from "../../src/errors/index.js";
import type { Driver } from "../../src/stores/redis-client/client.js";
import { driverOf } from "../../src/stores/redis-client/supported-clients.js";
import { RedlockNode } from "../../src/stores/redlock/quorum.js";
import { RedlockStore } from "../../src/stores/redlock/redlock-store.js";
import { isFull } from "../fixtures/depth.js";
import { SEED } from "../fixtures/seed.js";
import { waitUntil } from "../servers/wait-until.js";
import { RedlockTrial } from "./trial.js";

const RUNS = isFull ? 300 : 40;
/** Longer than any call may take with the options below, on a busy machine. */
const PATIENCE_MS = 30_000;

const escaped: unknown[] = [];
const onEscape = (error: unknown): void => void escaped.push(error);
beforeEach(() => {
  escaped.length = 0;
  process.on("unhandledRejection", onEscape);
  process.on("uncaughtException", onEscape);
});
afterEach(() => {
  process.off("unhandledRejection", onEscape);
  process.off("uncaughtException", onEscape);
  expect(escaped).toEqual([]);
});

const bytes = fc.uint8Array({ maxLength: 200 }).map((some) => Buffer.from(some));
const numbers = fc.constantFrom("0", "-1", "1e99", "nan", "inf", "0x10", "9999999999999999");
const words = fc
  .array(fc.oneof(numbers, fc.constantFrom("H", "W", "D", "R", "V", "-", "a/b", "{", "")), {
    maxLength: 9,
  })
  .map((some) => Buffer.from(some.join(" ")));
const digits = fc
  .string({ unit: fc.constantFrom(..."0123456789"), maxLength: 160 })
  .map((some) => Buffer.from(some));
const huge = fc.constant(Buffer.alloc(1_000_000, "7"));
const garbage = fc.oneof(
  { weight: 3, arbitrary: bytes },
  { weight: 3, arbitrary: words },
  { weight: 2, arbitrary: digits },
  { weight: 1, arbitrary: huge },
);

/** Changes a valid text a little, so that it stays nearly valid. */
const slip = fc.record({ at: fc.nat({ max: 160 }), with: bytes });

type Place = "node" | "lock" | "ballot" | "waiters";
const KEYS: Record<Place, string> = {
  node: "holdfast:node",
  lock: "m",
  ballot: "holdfast::b:l:m",
  waiters: "holdfast::w:l:m",
};

const LIMITS = { storeTimeoutMs: 300, ttlMs: 2_000 } as const;

/** Makes all kinds of calls for a name, one after the other. Each ends, perhaps with an error. */
async function useAll(locks: Holdfast, name: string): Promise<void> {
  const calls: Record<string, () => Promise<unknown>> = {
    tryAcquire: async () => await (await locks.mutex(name).tryAcquire(LIMITS))?.release(),
    acquire: async () => {
      const lease = await locks.mutex(name).acquire({ ...LIMITS, waitMs: 100 });
      await lease.renew().catch(expectOurs);
      await lease.release();
    },
    inspect: () => locks.inspect(name),
    list: async () => {
      for await (const _ of locks.list());
    },
    revoke: () => locks.revoke(name, { token: 64n, reason: "fuzz" }),
  };
  for (const [call, start] of Object.entries(calls)) {
    const ended = start().catch(expectOurs);
    const isOver = await Promise.race([ended.then(() => true), patience()]);
    expect(isOver, `${call} ends`).toBe(true);
  }
}

function expectOurs(error: unknown): void {
  expect(error).toBeInstanceOf(HoldfastError);
  expect(String(error), "the script did not fail half-way").not.toContain("user_script");
}

function patience(): Promise<false> {
  return new Promise((resolve) => setTimeout(() => resolve(false), PATIENCE_MS).unref());
}

describe.concurrent("garbage", { timeout: 300_000 }, () => {
  it("in keys of one node, or of all", async () => {
    await using trial = await RedlockTrial.start(3);
    const { clients } = await trial.open();
    const plan = fc.record({
      place: fc.constantFrom<Place>("node", "lock", "ballot", "waiters"),
      content: fc.oneof(garbage, slip),
      nodes: fc.constantFrom(1, 3),
      isHeld: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(plan, async ({ place, content, nodes, isHeld }) => {
        for (const client of clients) await client.flushall();
        // The nodes are empty, so the test declares them complete.
        const { locks } = await trial.open();
        await locks.mutex("m").run(() => {});
        const lease = isHeld ? await locks.mutex("m").acquire(LIMITS) : null;
        for (const client of clients.slice(0, nodes)) {
          if (Buffer.isBuffer(content)) await client.set(KEYS[place], content);
          else await client.setrange(KEYS[place], content.at, content.with).catch(() => {});
        }
        await lease?.renew().catch(expectOurs);
        await useAll(locks, "m");
        await lease?.release().catch(expectOurs);
        await locks.close();
      }),
      { seed: SEED, numRuns: RUNS, endOnFailure: true },
    );
  });

  it("in messages", async () => {
    await using trial = await RedlockTrial.start(3);
    const [a, b] = [await trial.open(), await trial.open()];
    const [first] = a.clients;
    await Promise.all([a, b].map(({ locks }) => locks.mutex("warm").run(() => {})));
    const channels = async (): Promise<string[]> => {
      const found = (await first?.pubsub("CHANNELS", "holdfast@*")) as string[];
      return found.filter((channel) => !channel.includes("/"));
    };
    await waitUntil(async () => (await channels()).length >= 2, {
      what: "both clients are subscribed",
    });
    const known = ["x", "m{}", "v[null]", "", "w", "w ", "e ", "s zz", "x a b c", "x o 7 r"];
    const message = fc.oneof(
      fc.constantFrom(...known).map((text) => Buffer.from(text)),
      fc.string().map((text) => Buffer.from(`x ${text} 1 y`)),
      garbage,
    );
    const lease = await a.locks.mutex("m").acquire();
    const waiting = b.locks.mutex("m").acquire({ waitMs: 120_000 });
    await fc.assert(
      fc.asyncProperty(message, async (text) => {
        for (const channel of await channels()) {
          for (const client of a.clients) await client.publish(channel, text);
        }
      }),
      { seed: SEED, numRuns: 5 * RUNS, endOnFailure: true },
    );
    lease.assertHeld();
    expect(await lease.release()).toBe(true);
    expect(await (await waiting).release()).toBe(true);
  });

  it("in replies", async () => {
    await using trial = await RedlockTrial.start(3);
    const { clients } = await trial.open();
    let spoilt: { readonly nodes: number; readonly reply: unknown } | null = null;
    const nodes = clients.map((client, at) => {
      const driver = driverOf(client);
      const send: Driver["send"] = async (...request) => {
        const reply = await driver.send(...request);
        return spoilt && at < spoilt.nodes ? spoilt.reply : reply;
      };
      const own = { send: { value: send } };
      return new RedlockNode(`n${at}`, Object.create(driver, own) as Driver);
    });
    const settings = { namespace: "", nodeTimeoutMs: 50, driftFactor: 0.01, maxTtlMs: 30_000 };
    await using locks = new Holdfast(new RedlockStore(nodes, { ...settings, bootstrap: "now" }));
    await locks.mutex("m").run(() => {});
    const scalar = fc.oneof(
      fc.constantFrom<unknown>(..."GXHRLATSVOQFUN", "", null, 1, 0, -1, Number.NaN),
      fc.string(),
      fc.integer(),
    );
    const any = fc.oneof(scalar, fc.array(fc.oneof(scalar, fc.array(scalar)), { maxLength: 9 }));
    await fc.assert(
      fc.asyncProperty(any, fc.constantFrom(1, 3), async (reply, count) => {
        spoilt = { nodes: count, reply };
        await useAll(locks, "m");
        spoilt = null;
        const lease = await locks.mutex("m").acquire({ waitMs: PATIENCE_MS });
        expect(await lease.release()).toBe(true);
      }),
      { seed: SEED, numRuns: RUNS, endOnFailure: true },
    );
  });
});
