import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needShared } from "../needs.js";
import { PROMPT_MS, until } from "../patience.js";

const reason = "stuck deploy";

export const revokeReader: Behaviour = {
  title: "revoke ends one of several readers and leaves the others",
  needs: needShared,
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const first = await a.readWrite("m").read.acquire();
    const second = await a.readWrite("m").read.acquire();
    const { signal } = first;
    assert.equal(await b.revoke("m", { token: first.token, reason }), true);
    await until("the victim is told", () => signal.aborted, PROMPT_MS);
    second.assertHeld();
    assert.equal(second.signal.aborted, false);
    assert.equal(await second.release(), true);
  },
};
