import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needMarks } from "../needs.js";

export const spacesApart: Behaviour = {
  title: "a lock, an election and a once of the same name are three things",
  needs: needMarks,
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    await a.mutex("m").acquire();
    await a.election("m").campaign();
    const result = await b.once("m", () => "ran", { keepMs: context.ttl.longMs });
    assert.equal(result.ran, true);
    assert.equal((await b.inspect("m")).holders.length, 1);
    assert.equal((await b.inspect("m", "election")).holders.length, 1);
    assert.equal((await b.inspect("m", "once")).holders.length, 0);
  },
};
