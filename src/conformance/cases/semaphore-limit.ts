import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Behaviour } from "../behaviour.js";
import { needShared } from "../needs.js";
import { PATIENCE_MS, PROMPT_MS, within } from "../patience.js";

export const semaphoreLimit: Behaviour = {
  title: "a semaphore is used up to its limit and never above, with weights",
  needs: needShared,
  async run(context) {
    const clients = await Promise.all([1, 2, 3].map(() => context.open()));
    const limit = 5;
    let [used, most, served] = [0, 0, 0];
    const use = async (index: number): Promise<void> => {
      const weight = 1 + (index % 3);
      const locks = clients[index % 3];
      await locks?.semaphore("s", limit).run(
        async () => {
          used += weight;
          most = Math.max(most, used);
          await sleep(1 + (index % 4));
          used -= weight;
          served += 1;
        },
        { weight },
      );
    };
    const users = Promise.all(Array.from({ length: 60 }, (_, index) => use(index)));
    await within(PATIENCE_MS, "all are served", users);
    assert.equal(served, 60);
    assert.ok(most <= limit, `${most} permits of ${limit} were in use`);
    const permits = clients.flatMap((locks) => [1, 2].map(() => locks.semaphore("s", limit)));
    const [last, ...rest] = permits;
    const taken = Promise.all(rest.map((permit) => permit.acquire()));
    const leases = await within(PROMPT_MS, "all of it is used", taken);
    assert.equal(await last?.tryAcquire(), null);
    await Promise.all(leases.map((lease) => lease.release()));
  },
};
