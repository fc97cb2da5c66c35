import assert from "node:assert/strict";
import type { Behaviour } from "../needs.js";
import { needAll, needFifo, needProcesses, needShared } from "../needs.js";
import { isSettled, PROMPT_MS, within } from "../patience.js";

export const readWrite: readonly Behaviour[] = [
  {
    title: "readers share, a writer is alone",
    needs: needShared,
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const readers = [
        await a.readWrite("m").read.acquire(),
        await b.readWrite("m").read.acquire(),
        await a.readWrite("m").read.tryAcquire(),
      ];
      assert.equal(new Set(readers.map((lease) => lease?.token)).size, 3, "each has its own token");
      assert.equal(await b.readWrite("m").write.tryAcquire(), null, "readers keep writers out");
      const writing = b.readWrite("m").write.acquire();
      await context.untilWaiting(a, "m", 1);
      for (const lease of readers) {
        assert.equal(await isSettled(writing), false, "a writer waits for the last reader");
        assert.equal(await lease?.release(), true);
      }
      const writer = await within(PROMPT_MS, "the writer is served", writing);
      assert.equal(await a.readWrite("m").read.tryAcquire(), null, "a writer keeps readers out");
      assert.equal(await a.readWrite("m").write.tryAcquire(), null);
      await writer.release();
    },
  },
  {
    title: "a waiting writer stops new readers, which acquire together after it",
    needs: needAll(needShared, needFifo),
    async run(context) {
      const [a, b] = [await context.openKnown(), await context.openKnown()];
      const reader = await a.readWrite("m").read.acquire();
      const writing = b.readWrite("m").write.acquire();
      await context.untilWaiting(a, "m", 1);
      assert.equal(
        await a.readWrite("m").read.tryAcquire(),
        null,
        "a new reader does not overtake the writer",
      );
      const reading = [a.readWrite("m").read.acquire(), b.readWrite("m").read.acquire()];
      await context.untilWaiting(a, "m", 3);
      await reader.release();
      const writer = await within(PROMPT_MS, "the writer is served", writing);
      assert.equal(await isSettled(Promise.race(reading), 50), false);
      await writer.release();
      await within(PROMPT_MS, "both readers are served", Promise.all(reading));
    },
  },
  {
    title: "readers behind a writer that gives up acquire at once",
    needs: needAll(needShared, needFifo),
    async run(context) {
      const [a, b] = [await context.openKnown(), await context.openKnown()];
      await a.readWrite("m").read.acquire();
      const controller = new AbortController();
      const writing = b.readWrite("m").write.acquire({ signal: controller.signal });
      await context.untilWaiting(a, "m", 1);
      const reading = a.readWrite("m").read.acquire();
      await context.untilWaiting(a, "m", 2);
      controller.abort(new Error("gave up"));
      await assert.rejects(writing, { message: "gave up" });
      await within(PROMPT_MS, "the reader joins the other", reading);
    },
  },
  {
    title: "a killed reader does not keep writers out forever",
    needs: needAll(needShared, needProcesses),
    async run(context) {
      const [locks, child] = [await context.open(), await context.child()];
      const { renewedMs } = context.ttl;
      await child.call("acquire", { kind: "read", name: "m" }, { ttlMs: renewedMs });
      const other = await locks.readWrite("m").read.acquire();
      const writing = locks.readWrite("m").write.acquire();
      await child.kill();
      assert.equal(await other.release(), true);
      await within(2 * renewedMs + PROMPT_MS, "the writer is served", writing);
    },
  },
];
