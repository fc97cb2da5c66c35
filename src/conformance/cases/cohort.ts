import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { needAll, needFifo, needSpans } from "../needs.js";
import { PATIENCE_MS, within } from "../patience.js";

const LIMIT = 3;

export const cohort: Behaviour = {
  title: "waiters of one client take at most cohortLimit turns while another client waits",
  needs: needAll(needFifo, needSpans),
  async run(context) {
    const many = await context.openKnown({ cohortLimit: LIMIT });
    const [one, first] = [await context.openKnown(), await context.openKnown()];
    const served: { readonly by: string; readonly token: bigint }[] = [];
    const turn = (by: string) => async (lease: { readonly token: bigint }) => {
      served.push({ by, token: lease.token });
      // Others have the time to stand in line.
      await new Promise((resume) => setTimeout(resume, 2));
    };
    const held = await first.mutex("m").acquire();
    const crowd = Array.from({ length: 12 }, () => many.mutex("m").run(turn("many")));
    await context.untilWaiting(first, "m", 1);
    const single = (async () => {
      for (let round = 0; round < 3; round += 1) {
        const before = served.length;
        await one.mutex("m").run(turn("one"));
        const between = served.slice(before).findIndex(({ by }) => by === "one");
        assert.ok(between <= LIMIT, `${between} turns while another client waited`);
      }
    })();
    await context.untilWaiting(first, "m", 2);
    await held.release();
    await within(PATIENCE_MS, "all are served", Promise.all([...crowd, single]));
    const inOrder = served.map(({ token }) => token);
    assert.deepEqual(
      inOrder,
      [...inOrder].sort((a, b) => (a < b ? -1 : 1)),
      "tokens rise",
    );
    assert.equal(new Set(inOrder).size, 15, "every turn has a token of its own");
  },
};
