import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";

export const list: Behaviour = {
  title: "list yields the locks in use whose names begin with the prefix, taken literally",
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const names = ["job:1", "job:2", "job*", "jab:1", "other", "job"];
    const leases = await Promise.all(names.map((name) => a.mutex(name).acquire()));
    await a.election("job:seat").campaign();
    const listed = async (options?: Parameters<typeof b.list>[0]) => {
      const found: string[] = [];
      for await (const { name, holders } of b.list(options)) {
        assert.equal(holders.length, 1);
        found.push(name);
      }
      return found.sort();
    };
    assert.deepEqual(await listed({ prefix: "job:" }), ["job:1", "job:2"]);
    assert.deepEqual(await listed({ prefix: "job" }), ["job", "job*", "job:1", "job:2"]);
    assert.deepEqual(await listed({ prefix: "job*" }), ["job*"]);
    assert.deepEqual(await listed({ prefix: "j?b" }), []);
    assert.deepEqual(await listed({ prefix: "j[ao]b" }), []);
    assert.deepEqual(await listed({ prefix: "none" }), []);
    assert.deepEqual(await listed(), [...names].sort());
    assert.deepEqual(await listed({ space: "election" }), ["job:seat"]);
    await Promise.all(leases.map((lease) => lease.release()));
    assert.deepEqual(await listed(), [], "what is free is not in use");
  },
};
