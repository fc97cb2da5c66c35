import assert from "node:assert/strict";
import { LeaseLostError } from "../../errors.js";
import type { Behaviour } from "../behaviour.js";
import { PROMPT_MS, within } from "../patience.js";

export const closeTells: Behaviour = {
  title: "close tells whoever still works under a lease, and run passes it off as no success",
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    let [inside, end] = [() => {}, () => {}];
    const started = new Promise<void>((resume) => {
      inside = resume;
    });
    const running = a.mutex("m").run(async (lease) => {
      const ended = new Promise<void>((resume) => {
        end = resume;
      });
      lease.signal.addEventListener("abort", () => end());
      inside();
      await ended;
      assert.throws(() => lease.assertHeld(), { code: "HF_LEASE_LOST" });
      return "too late";
    });
    running.catch(() => undefined);
    await started;
    await a.close();
    const ended = within(PROMPT_MS, "the body is told", running);
    await assert.rejects(ended, (error) => {
      assert.ok(error instanceof LeaseLostError);
      assert.equal(error.value, "too late");
      return true;
    });
    await context.untilFree(b, "m", PROMPT_MS);
  },
};
