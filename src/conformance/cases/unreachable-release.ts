import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needFaults } from "../needs.js";
import { PROMPT_MS, within } from "../patience.js";

export const unreachableRelease: Behaviour = {
  title: "a release that cannot reach the store ends in time and never masks the result",
  needs: needFaults("cut", "heal"),
  async run(context) {
    const { locks, faults } = await context.openFaulty();
    const { shortMs } = context.ttl;
    const running = locks.mutex("m").run(
      async () => {
        await faults.cut();
        return "the value";
      },
      { ttlMs: shortMs },
    );
    const value = await within(shortMs + PROMPT_MS, "the release gives up", running);
    assert.equal(value, "the value");
    await faults.heal();
    await context.untilFree(locks, "m");
  },
};
