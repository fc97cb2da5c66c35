import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needMarks } from "../needs.js";
import { until } from "../patience.js";

const keepMs = 60_000;

export const onceForgotten: Behaviour = {
  title: "once: the mark is gone after keepMs, or when it is revoked",
  needs: needMarks,
  async run(context) {
    const locks = await context.open();
    const first = await locks.once("job", () => 1, { keepMs: 1_500 });
    const again = () => locks.once("job", () => 2, { keepMs });
    assert.equal((await again()).ran, false);
    const second = await until("it may run again", async () => {
      const result = await again();
      return result.ran && result;
    });
    assert.ok(first.ran && second.token > first.token);
    const { mark } = await locks.inspect("job", "once");
    assert.equal(mark?.token, second.token);
    assert.equal(await locks.revoke("job", { token: first.token, reason: "t" }, "once"), false);
    assert.equal(await locks.revoke("job", { token: second.token, reason: "t" }, "once"), true);
    assert.equal((await again()).ran, true);
  },
};
