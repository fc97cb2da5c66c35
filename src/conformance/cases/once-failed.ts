import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needMarks } from "../needs.js";
import { PATIENCE_MS, PROMPT_MS, until, within } from "../patience.js";

const keepMs = 60_000;
const failWork = () => assert.fail("ran a second time");

export const onceFailed: Behaviour = {
  title: "once: a failure frees it, and whoever waits takes over",
  needs: needMarks,
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    let fail: (error: Error) => void = () => {};
    const failing = a.once("job", () => new Promise((_, reject) => (fail = reject)), { keepMs });
    await until("it runs", async () => (await b.inspect("job", "once")).holders.length === 1);
    const waiting = b.once("job", () => "took over", { keepMs, waitMs: PATIENCE_MS });
    await until("it waits", async () => (await b.inspect("job", "once")).waiters.length === 1);
    fail(new Error("the work failed"));
    await assert.rejects(failing, { message: "the work failed" });
    const taken = await within(PROMPT_MS, "the waiter takes over", waiting);
    assert.ok(taken.ran && taken.value === "took over");
    const late = await a.once("job", failWork, { keepMs });
    assert.ok(!late.ran && late.state === "done");
  },
};
