import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";

export const namespacesApart: Behaviour = {
  title: "locks of different namespaces never meet, also where their names seem to",
  async run(context) {
    // Written one after the other, namespace and name would be the same text.
    const [one, other] = [await context.open(), context.bind(await context.openStore("2"))];
    const lease = await one.mutex("2m").acquire();
    assert.ok(await other.mutex("m").tryAcquire());
    assert.ok(await other.mutex("2m").tryAcquire());
    assert.ok(await one.mutex("m").tryAcquire());
    lease.assertHeld();
    const listed: string[] = [];
    for await (const { name } of one.list()) listed.push(name);
    assert.deepEqual(listed.sort(), ["2m", "m"]);
  },
};
