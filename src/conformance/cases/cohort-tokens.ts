import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needSpans } from "../needs.js";
import { PATIENCE_MS, within } from "../patience.js";

export const cohortTokens: Behaviour = {
  title:
    "quick turns of several clients never share a token, and whoever comes later has the higher",
  needs: needSpans,
  async run(context) {
    // The last asks for more turns than some stores grant, and has more waiters than they do.
    const limits = [8, 8, 1_024];
    const clients = await Promise.all(limits.map((cohortLimit) => context.open({ cohortLimit })));
    const tokens: bigint[] = [];
    // Bodies that take no time: grants follow each other faster than any clock ticks.
    const turns = Array.from({ length: 240 }, (_, index) =>
      clients[index % 3]?.mutex("m").run(({ token }) => void tokens.push(token)),
    );
    await within(PATIENCE_MS, "all are served", Promise.all(turns));
    assert.equal(tokens.length, 240);
    for (const [index, token] of tokens.entries()) {
      const before = tokens[index - 1] ?? 0n;
      assert.ok(token > before, `token ${token} comes after ${before}`);
    }
  },
};
