import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { StoreError } from "../../errors/index.js";
import { claimOf } from "../claim.js";
import type { Behaviour } from "../needs.js";
import { needAll, needFifo, needSpans } from "../needs.js";
import { isSettled, PATIENCE_MS, PROMPT_MS, until, within } from "../patience.js";

const strict = { fairness: "strict" } as const;

const LIMIT = 3;

/** Spans above any sensible request, up to more than a number counts exactly. */
const HUGE_SPANS = [1e12, Number.MAX_SAFE_INTEGER, 2 ** 60];

export const waitingOrder: readonly Behaviour[] = [
  {
    title: "waiters of all clients acquire in the order of their arrival",
    needs: needFifo,
    async run(context) {
      const clients = await Promise.all([1, 2, 3].map(() => context.openKnown(strict)));
      const [first] = clients;
      assert.ok(first);
      const held = await first.mutex("m").acquire();
      const served: number[] = [];
      const waiting: Promise<unknown>[] = [];
      for (let index = 0; index < 9; index += 1) {
        const client = clients[index % 3];
        assert.ok(client);
        const turn = client.mutex("m").run(() => served.push(index));
        waiting.push(turn);
        await context.untilWaiting(first, "m", index + 1);
      }
      await held.release();
      await within(PATIENCE_MS, "all waiters are served", Promise.all(waiting));
      assert.deepEqual(served, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    },
  },
  {
    title: "calls of one client on one lock are served in the order of the calls",
    needs: needFifo,
    async run(context) {
      const order = Array.from({ length: 16 }, (_, index) => index);
      for (const options of [strict, {}]) {
        const client = await context.openKnown(options);
        for (const isHeld of [false, true]) {
          const held = isHeld ? await client.mutex("m").acquire() : null;
          const served: number[] = [];
          // Nothing waits between the calls: the store must keep apart what is sent together.
          const turns = order.map((index) => client.mutex("m").run(() => served.push(index)));
          await held?.release();
          await within(PATIENCE_MS, "all calls are served", Promise.all(turns));
          assert.deepEqual(served, order);
        }
      }
    },
  },
  {
    title: "a try does not overtake waiters",
    needs: needFifo,
    async run(context) {
      const [a, b] = [await context.openKnown(strict), await context.openKnown(strict)];
      const held = await a.mutex("m").acquire();
      const waiting = b.mutex("m").acquire();
      await context.untilWaiting(a, "m", 1);
      const [, tried] = await Promise.all([held.release(), a.mutex("m").tryAcquire()]);
      assert.equal(tried, null);
      const next = await within(PROMPT_MS, "the waiter is served", waiting);
      await next.release();
    },
  },
  {
    title: "a waiter that waits for several of its ttls keeps its place",
    needs: needFifo,
    async run(context) {
      const clients = await Promise.all([1, 2, 3].map(() => context.openKnown(strict)));
      const [a, b, c] = clients;
      assert.ok(a && b && c);
      const { renewedMs, longMs } = context.ttl;
      const held = await a.mutex("m").acquire();
      const first = b.mutex("m").acquire({ ttlMs: renewedMs });
      await context.untilWaiting(a, "m", 1);
      const second = c.mutex("m").acquire({ ttlMs: longMs });
      await context.untilWaiting(a, "m", 2);
      await sleep(3 * renewedMs);
      assert.equal((await a.inspect("m")).waiters.length, 2);
      await held.release();
      const lease = await within(PROMPT_MS, "the first is served first", first);
      assert.equal(await isSettled(second), false);
      await lease.release();
      await within(PROMPT_MS, "the second is served", second);
    },
  },
  {
    title: "waiters of one client take at most maxLocalTurns turns while another client waits",
    needs: needAll(needFifo, needSpans),
    async run(context) {
      const many = await context.openKnown({ maxLocalTurns: LIMIT });
      const [one, first] = [await context.openKnown(), await context.openKnown()];
      const served: { readonly by: string; readonly token: bigint }[] = [];
      let isOneDone = false;
      const isOneWaiting = async (): Promise<boolean> => {
        const { waiters } = await first.inspect("m");
        return isOneDone || waiters.some(({ meta }) => meta.by === "one");
      };
      const turn = (by: string) => async (lease: { readonly token: bigint }) => {
        served.push({ by, token: lease.token });
        // Turns count from the moment when the other client stands in the queue.
        if (by === "many") await until("the other client waits", isOneWaiting);
      };
      const held = await first.mutex("m").acquire();
      const crowd = Array.from({ length: 12 }, () => many.mutex("m").run(turn("many")));
      // The first call of the crowd stands for itself, the second one for all others.
      await context.untilWaiting(first, "m", 2);
      const single = (async () => {
        for (let round = 0; round < 3; round += 1) {
          const before = served.length;
          await one.mutex("m").run(turn("one"), { meta: { by: "one" } });
          const between = served.slice(before).findIndex(({ by }) => by === "one");
          assert.ok(between <= LIMIT, `${between} turns while another client waited`);
        }
        isOneDone = true;
      })();
      await context.untilWaiting(first, "m", 3);
      await held.release();
      await within(PATIENCE_MS, "all are served", Promise.all([...crowd, single]));
      const inOrder = served.map(({ token }) => token);
      assert.deepEqual(
        inOrder,
        [...inOrder].sort((a, b) => (a < b ? -1 : 1)),
        "tokens rise",
      );
      assert.equal(new Set(inOrder).size, 15, "every turn has a token of its own");
    },
  },
  {
    title: "tokens strictly rise with quick turns of several clients",
    needs: needSpans,
    async run(context) {
      // The last client asks for more turns than some stores grant.
      const limits = [8, 8, 1_024];
      const clients = await Promise.all(
        limits.map((maxLocalTurns) => context.open({ maxLocalTurns })),
      );
      const tokens: bigint[] = [];
      // The bodies take no time: grants follow each other faster than a clock ticks.
      const turns = Array.from({ length: 240 }, (_, index) =>
        clients[index % 3]?.mutex("m").run(({ token }) => void tokens.push(token)),
      );
      await within(PATIENCE_MS, "all are served", Promise.all(turns));
      assert.equal(tokens.length, 240);
      for (const [index, token] of tokens.entries()) {
        const before = tokens[index - 1] ?? 0n;
        assert.ok(token > before, `token ${token} does not exceed ${before}`);
      }
    },
  },
  {
    title: "a claim for very many tokens is refused or cut short, and later tokens still rise",
    needs: needSpans,
    async run(context) {
      const [greedy, modest] = [await context.openStore(), await context.openStore()];
      context.bind(greedy);
      context.bind(modest);
      let highest = 0n;
      for (const span of [...HUGE_SPANS, 1, 1, 1]) {
        const store = span === 1 ? modest : greedy;
        const claim = { ...claimOf(store, "m", context.ttl.longMs), span };
        const grant = await store.acquire(claim, null).catch((error: unknown) => {
          assert.ok(span > 1 && error instanceof StoreError, `${error}`);
          assert.equal(error.outcome, "not_applied");
          return null;
        });
        if (!grant) continue;
        assert.ok(grant.type === "granted");
        assert.ok(grant.token > highest, `token ${grant.token} does not exceed ${highest}`);
        highest = grant.token + BigInt(grant.span) - 1n;
        assert.ok(highest <= Number.MAX_SAFE_INTEGER, `${highest} is exact as a number`);
        assert.equal(await store.release(grant, PROMPT_MS), true);
      }
    },
  },
];
