import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";

const LONGEST = 512;

export const namesRefused: Behaviour = {
  title: "names that are empty, malformed or too long are refused before anything is sent",
  async run(context) {
    const locks = await context.open();
    const long = [
      "x".repeat(LONGEST + 1),
      "é".repeat(LONGEST / 2 + 1),
      "🔒".repeat(LONGEST / 4 + 1),
    ];
    const malformed = ["", "\ud800", "a\udc00b", "\udc00\ud800", ...long];
    for (const name of [...malformed, undefined, null, 7, {}, ["a"]] as string[]) {
      const invalid = { code: "HF_INVALID_OPTION", option: "name" };
      assert.throws(() => locks.mutex(name), invalid);
      assert.throws(() => locks.election(name), invalid);
      await assert.rejects(locks.inspect(name), invalid);
      await assert.rejects(locks.revoke(name, { token: 1n, reason: "test" }), invalid);
      if (!context.traits.modes.includes("shared")) continue;
      assert.throws(() => locks.readWrite(name), invalid);
      assert.throws(() => locks.semaphore(name, 2), invalid);
    }
  },
};
