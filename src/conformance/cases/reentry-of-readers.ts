import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needShared } from "../needs.js";
import { PATIENCE_MS, within } from "../patience.js";

const reentrant = true;

export const reentryOfReaders: Behaviour = {
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
    const refused = within(PATIENCE_MS, "the write does not wait for itself", nested);
    await assert.rejects(refused, { code: "HF_UNSUPPORTED" });
    await context.untilFree(locks, "m");
  },
};
