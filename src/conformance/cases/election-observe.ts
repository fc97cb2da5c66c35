import assert from "node:assert/strict";
import type { Leader } from "../../locks/election.js";
import type { Behaviour } from "../behaviour.js";
import { PROMPT_MS, until, within } from "../patience.js";

export const electionObserve: Behaviour = {
  title: "an observer sees the leaders come and go, and never a lower token",
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const controller = new AbortController();
    const seen: (Leader | null)[] = [];
    const observing = (async () => {
      const options = { everyMs: 10, signal: controller.signal };
      for await (const leader of b.election("seat").observe(options)) seen.push(leader);
    })();
    await until("nobody is seen", () => seen.length === 1);
    const tokens: bigint[] = [];
    for (let round = 0; round < 3; round += 1) {
      const lease = await a.election("seat").campaign({ meta: { round } });
      tokens.push(lease.token);
      await until("the leader is seen", () => seen.at(-1)?.token === lease.token);
      assert.equal(seen.at(-1)?.meta.round, round);
      await lease.release();
    }
    await until("nobody is seen", () => seen.at(-1) === null);
    controller.abort();
    await within(PROMPT_MS, "the observer ends", observing);
    const seenTokens = seen.flatMap((leader) => (leader ? [leader.token] : []));
    assert.deepEqual(seenTokens, tokens, "each once, in order");
  },
};
