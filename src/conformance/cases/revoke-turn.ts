import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needSpans } from "../needs.js";
import { PROMPT_MS, until, within } from "../patience.js";

const reason = "stuck deploy";

export const revokeTurn: Behaviour = {
  title: "revoke ends the turn under way, by the token of the turn",
  needs: needSpans,
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const held = await b.mutex("m").acquire();
    // The first stands in line for itself; the others come with the next grant, which has a span.
    const turns = Array.from({ length: 4 }, () => a.mutex("m").acquire());
    await context.untilWaiting(b, "m", 1);
    await held.release();
    const [first, second, third, fourth] = turns;
    assert.ok(first && second && third && fourth);
    await (await first).release();
    await (await second).release();
    const victim = await third;
    const { signal } = victim;
    // The grant is known by its first token, the turn by its own: either names it.
    const [holder] = (await b.inspect("m")).holders;
    assert.ok(holder && holder.token < victim.token);
    assert.equal(await b.revoke("m", { token: victim.token, reason }), true);
    await until("the turn is ended", () => signal.aborted, PROMPT_MS);
    const next = await within(PROMPT_MS, "the next one acquires anew", fourth);
    assert.ok(next.token > victim.token);
    next.assertHeld();
  },
};
