import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { PATIENCE_MS, within } from "../patience.js";

export const electionAgain: Behaviour = {
  title: "a leader that loses its office campaigns again, and its bodies never overlap",
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const seat = a.election("seat");
    const tokens: bigint[] = [];
    let inside = 0;
    const leading = seat.lead(async ({ token, signal }) => {
      inside += 1;
      assert.equal(inside, 1, "bodies do not overlap");
      tokens.push(token);
      if (tokens.length < 3) {
        const lost = new Promise((resume) => signal.addEventListener("abort", resume));
        assert.equal(await b.revoke("seat", { token, reason: "test" }, "election"), true);
        await lost;
        // Winding down takes a moment; the next election has to wait for it.
        await new Promise((resume) => setTimeout(resume, 50));
      }
      inside -= 1;
      if (tokens.length === 2) throw new Error("stopped because the office was lost");
      return "led";
    });
    assert.equal(await within(PATIENCE_MS, "it leads in the end", leading), "led");
    assert.equal(tokens.length, 3);
    assert.ok(tokens.every((token, index) => index === 0 || token > (tokens[index - 1] ?? 0n)));
  },
};
