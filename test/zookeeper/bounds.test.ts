/** A server of an ensemble keeps sessions for less time than the others do. */
import assert from "node:assert/strict";
import { afterAll, afterEach, beforeAll, describe, it } from "vitest";
import { waitUntil } from "../servers/wait-until.js";
import {
  startZookeeperEnsemble,
  type ZookeeperEnsemble,
  type ZookeeperServer,
  zookeeperMissing,
} from "../servers/zookeeper.js";
import { ZookeeperTrial } from "./trial.js";

const TTL_MS = 12_000;
const LOW_MS = 2_000;

describe.skipIf(zookeeperMissing() !== null)("a server with a lower maxSessionTimeout", () => {
  let ensemble: ZookeeperEnsemble;
  let low: ZookeeperServer;
  let other: ZookeeperServer;
  const trial = new ZookeeperTrial();
  beforeAll(async () => {
    const lines = ["maxSessionTimeout=60000"];
    ensemble = await startZookeeperEnsemble(3, { tickMs: 200, lines });
    [low, other] = (await ensemble.followers()) as [ZookeeperServer, ZookeeperServer];
    lines.splice(0, 1, `maxSessionTimeout=${LOW_MS}`);
    await low.restart({ keepData: true });
    await ensemble.leader();
  }, 300_000);
  afterEach(() => trial.close());
  afterAll(() => ensemble[Symbol.asyncDispose]());

  it("does not end a session before its time, when its answer is lost", {
    timeout: 120_000,
  }, async () => {
    const [toOther, toLow] = await Promise.all(
      [other, low].map(({ port }) => trial.proxy({ targetPort: port, framing: "zookeeper" })),
    );
    assert.ok(toOther && toLow);
    toLow.cut();
    const locks = await trial.open(`127.0.0.1:${toOther.port}/locks?host=127.0.0.1:${toLow.port}`);
    const lease = await locks.mutex("m").acquire({ ttlMs: TTL_MS });
    // The next connections go to the other server, whose answers are lost, and then nowhere.
    await toLow.heal();
    let asked = 0;
    toLow.onRequest(({ command }) => {
      if (command === "CONNECT") asked += 1;
      return asked > 2 ? "drop" : undefined;
    });
    toLow.onReply(() => "drop");
    toOther.cut();
    await waitUntil(() => asked > 0, { what: "the other server is asked", timeoutMs: TTL_MS });
    const next = await (await trial.open(`127.0.0.1:${other.port}/locks`))
      .mutex("m")
      .acquire({ waitMs: 3 * TTL_MS });
    assert.notEqual(lease.state, "held");
    assert.ok(next.token > lease.token);
    await next.release();
  });
});
