/** The connection breaks at each request of an acquire and of a release, before or after it. */
import assert from "node:assert/strict";
import { afterAll, afterEach, beforeAll, describe, it } from "vitest";
import { startZookeeper, type ZookeeperServer, zookeeperMissing } from "../servers/zookeeper.js";
import { untilWaiting } from "../stores/trial.js";
import { Znodes } from "./harness.js";
import { ZookeeperTrial } from "./trial.js";

describe.skipIf(zookeeperMissing() !== null)("a connection that breaks", () => {
  let server: ZookeeperServer;
  const trial = new ZookeeperTrial();
  beforeAll(async () => {
    server = await startZookeeper({ tickMs: 200, maxSessionMs: 60_000 });
  });
  afterEach(() => trial.close());
  afterAll(() => server.close());

  /** Runs a turn and breaks the connection at the message number `at`; false where it had less. */
  async function brokenTurn(kind: "request" | "reply", at: number): Promise<boolean> {
    const proxy = await trial.proxy({ targetPort: server.port, framing: "zookeeper" });
    const name = `${kind}-${at}`;
    const locks = await trial.open(`127.0.0.1:${proxy.port}/lost`);
    const observer = await trial.open(`127.0.0.1:${server.port}/lost`);
    let seen = 0;
    const judge = (): "reset" | undefined => (seen++ === at ? "reset" : undefined);
    const stop = kind === "request" ? proxy.onRequest(judge) : proxy.onReply(judge);
    const lease = await locks.mutex(name).acquire();
    const behind = locks.mutex(name).acquire();
    await untilWaiting(observer, name);
    const { holders } = await observer.inspect(name);
    assert.deepEqual(
      holders.map(({ token }) => token),
      [lease.token],
    );
    assert.equal(await lease.release(), true);
    const next = await behind;
    assert.ok(next.token > lease.token);
    await next.release();
    await locks.once(`${name}-once`, async () => {}, { keepMs: 60_000 });
    const again = await locks.once(`${name}-once`, async () => {}, { keepMs: 60_000 });
    assert.equal(again.ran, false, "the mark is there");
    stop();
    await using znodes = new Znodes([server.port]);
    assert.deepEqual(await znodes.below(`/lost/${name}`), [], "no entry is left");
    return seen > at;
  }

  it.for(["request", "reply"] as const)(
    "at each %s of a turn does no harm",
    { timeout: 240_000 },
    async (kind) => {
      let at = 0;
      while (await brokenTurn(kind, at)) {
        at += 1;
        await trial.close();
      }
      assert.ok(at > 15, `a turn has more messages than ${at}`);
    },
  );
});
