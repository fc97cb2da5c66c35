import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Behaviour } from "../needs.js";
import { BRIEF_WAIT_MS, PATIENCE_MS, PROMPT_MS, timesOut, until, within } from "../patience.js";

export const all: readonly Behaviour[] = [
  {
    title: "several locks at once: nothing stays held when one is not available",
    async run(context) {
      const [a, b] = [await context.openKnown(), await context.openKnown()];
      const all = b.all([b.mutex("z"), b.mutex("x"), b.mutex("y")]);
      const taken = await a.mutex("y").acquire();
      assert.equal(await all.tryAcquire(), null);
      await timesOut(all.acquire({ waitMs: BRIEF_WAIT_MS }));
      const controller = new AbortController();
      const aborted = all.acquire({ signal: controller.signal });
      await context.untilWaiting(a, "y", 1);
      controller.abort(new Error("gave up"));
      await assert.rejects(aborted, { message: "gave up" });
      assert.deepEqual(b.held(), []);
      for (const name of ["x", "z"]) await context.untilFree(a, name, PROMPT_MS);

      await taken.release();
      const set = await within(PROMPT_MS, "all are free", all.acquire());
      for (const name of ["x", "y", "z"]) {
        assert.equal(await a.mutex(name).tryAcquire(), null);
        const [holder] = (await a.inspect(name)).holders;
        if (holder) assert.equal(holder.token, set.tokenOf(name));
      }
      assert.equal(await set.release(), true);
      for (const name of ["x", "y", "z"]) await context.untilFree(a, name, PROMPT_MS);
    },
  },
  {
    title: "several locks at once: when one is lost, the whole set is lost",
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const set = await a.all([a.mutex("x"), a.mutex("y")]).acquire();
      assert.equal(set.state, "held");
      const token = set.tokenOf("y");
      assert.equal(await b.revoke("y", { token, reason: "test" }), true);
      await until("the holder learns of the loss", () => set.signal.aborted, PROMPT_MS);
      assert.equal(set.state, "lost");
      assert.equal(set.remainingMs(), 0);
      assert.throws(() => set.assertHeld(), { code: "HF_LEASE_LOST" });
      assert.equal(await set.release(), false);
      for (const name of ["x", "y"]) await context.untilFree(b, name, PROMPT_MS);
    },
  },
  {
    title: "several locks at once: opposite orders do not deadlock",
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const names = ["x", "y", "z"];
      let inside = 0;
      const work = async (): Promise<void> => {
        inside += 1;
        assert.equal(inside, 1, "one holder has all locks");
        await sleep(1);
        inside -= 1;
      };
      const rounds = Array.from({ length: 15 }, (_, round) => {
        const turned = round % 2 === 0 ? names : [...names].reverse();
        const [mine, theirs] = [turned, [...turned].reverse()];
        return [
          a.all(mine.map((name) => a.mutex(name))).run(work),
          b.all(theirs.map((name) => b.mutex(name))).run(work),
        ];
      });
      await within(PATIENCE_MS, "every run ends", Promise.all(rounds.flat()));
    },
  },
];
