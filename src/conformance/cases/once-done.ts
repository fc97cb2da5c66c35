import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needMarks } from "../needs.js";
import { PATIENCE_MS, PROMPT_MS, until, within } from "../patience.js";

const keepMs = 60_000;
const failWork = () => assert.fail("ran a second time");

export const onceDone: Behaviour = {
  title: "once: whoever comes second is told that it is running, or done, and by whom",
  needs: needMarks,
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    let finish: (value: number) => void = () => {};
    const work = () => new Promise<number>((resume) => (finish = resume));
    const first = a.once("job", work, { keepMs, meta: { job: "first" } });
    await until("it runs", async () => (await b.inspect("job", "once")).holders.length === 1);
    const second = await b.once("job", failWork, { keepMs });
    assert.ok(!second.ran && second.state === "running");
    assert.equal(second.by?.job, "first");
    const waiting = [a, b].map((locks) => {
      return locks.once("job", failWork, { keepMs, waitMs: PATIENCE_MS });
    });
    const other = b.once("job", failWork, { keepMs, waitMs: 100 });
    const timedOut = await within(PROMPT_MS, "the wait ends", other);
    assert.ok(!timedOut.ran && timedOut.state === "running");

    finish(7);
    const ran = await first;
    assert.ok(ran.ran && ran.value === 7);
    for (const told of await within(PROMPT_MS, "waiters are told", Promise.all(waiting))) {
      assert.deepEqual([told.ran, !told.ran && told.state, told.token], [false, "done", ran.token]);
    }
    const late = await b.once("job", failWork, { keepMs });
    assert.ok(!late.ran && late.state === "done");
    assert.deepEqual([late.token, late.by?.job], [ran.token, "first"]);
  },
};
