import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needMarks } from "../needs.js";

const keepMs = 60_000;

export const onceLost: Behaviour = {
  title: "once: a lost lease leaves no mark",
  needs: needMarks,
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const lost = a.once(
      "job",
      async ({ token, signal }) => {
        const told = new Promise((resume) => signal.addEventListener("abort", resume));
        assert.equal(await b.revoke("job", { token, reason: "test" }, "once"), true);
        await told;
      },
      { keepMs },
    );
    await assert.rejects(lost, { code: "HF_LEASE_LOST" });
    const again = await b.once("job", () => "ran", { keepMs });
    assert.ok(again.ran && again.value === "ran");
  },
};
