import assert from "node:assert/strict";
import { LeaseLostError } from "../../errors.js";
import type { Behaviour } from "../behaviour.js";

export const runAfterLoss: Behaviour = {
  title: "run waits for its body after a loss, and tells the loss with what came out of it",
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const outcome = a.mutex("m").run(async ({ token, signal }) => {
      const lost = new Promise((resume) => signal.addEventListener("abort", resume));
      assert.equal(await b.revoke("m", { token, reason: "test" }), true);
      await lost;
      return "too late";
    });
    await assert.rejects(outcome, (error) => {
      assert.ok(error instanceof LeaseLostError);
      assert.equal(error.value, "too late");
      assert.equal(error.reason, "revoked");
      return true;
    });
  },
};
