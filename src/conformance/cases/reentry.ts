import assert from "node:assert/strict";
import type { Behaviour } from "../needs.js";
import { needShared } from "../needs.js";
import { PATIENCE_MS, within } from "../patience.js";

const reentrant = true;

export const reentry: readonly Behaviour[] = [
  {
    title: "a re-entry shares token and signal, and only the outermost release frees the lock",
    async run(context) {
      const [a, b] = [await context.open({ reentrant }), await context.open()];
      const lock = a.mutex("m");
      const isTaken = async () => (await b.mutex("m").tryAcquire()) === null;
      let outlived: Promise<bigint> | undefined;
      const token = await lock.run(async (outer) => {
        const inner = await lock.run(async (lease) => {
          assert.equal(lease.signal, outer.signal);
          assert.equal(await isTaken(), true);
          return lease.token;
        });
        assert.equal(inner, outer.token, "a re-entry is not a grant");
        const explicit = await a.mutex("m").acquire();
        assert.equal(explicit.token, outer.token);
        const tried = await lock.tryAcquire();
        assert.equal(tried?.token, outer.token);
        await tried?.release();
        assert.equal(await explicit.release(), true);
        assert.equal(await explicit.release(), true, "a second release ends no other entry");
        assert.equal(await isTaken(), true, "the outer run still holds it");
        outer.assertHeld();
        const ended = new Promise((resume) => setImmediate(resume));
        outlived = ended.then(() => lock.run((lease) => lease.token));
        return outer.token;
      });
      assert.ok(outlived);
      const later = await within(
        PATIENCE_MS,
        "a call that outlives the run acquires a new lease",
        outlived,
      );
      assert.ok(later > token);
      await context.untilFree(b, "m");
    },
  },
  {
    title: "a read inside a write joins it, a write inside a read is refused at once",
    needs: needShared,
    async run(context) {
      const locks = await context.open({ reentrant });
      const { read, write } = locks.readWrite("m");
      await write.run(async (outer) => {
        assert.equal(await read.run((lease) => lease.token), outer.token);
        assert.equal(await locks.mutex("m").run((lease) => lease.token), outer.token);
      });
      const nested = read.run(() => write.run(() => assert.fail("ran")));
      const refused = within(PATIENCE_MS, "the write does not wait for its own read", nested);
      await assert.rejects(refused, { code: "HF_UNSUPPORTED" });
      await context.untilFree(locks, "m");
    },
  },
];
