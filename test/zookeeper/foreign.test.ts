/** Znodes of other programs beside the entries and the marks of the store, and data of any kind. */
import assert from "node:assert/strict";
import { afterAll, afterEach, beforeAll, beforeEach, describe, it } from "vitest";
import type { Connection } from "../../src/stores/zookeeper/wire/connection.js";
import {
  type CreateMode,
  childrenIn,
  create2,
  exists,
  getData,
  setData,
} from "../../src/stores/zookeeper/wire/requests.js";
import { startZookeeper, type ZookeeperServer, zookeeperMissing } from "../servers/zookeeper.js";
import { untilWaiting } from "../stores/trial.js";
import { ZookeeperTrial } from "./trial.js";
import { WireTrial } from "./wire-trial.js";

const CURATOR = "_c_0f9e8d7c-1111-2222-3333-444455556666-lock-";

describe.skipIf(zookeeperMissing() !== null)("znodes of other programs", () => {
  let server: ZookeeperServer;
  let wire: WireTrial;
  let other: Connection;
  const trial = new ZookeeperTrial();
  beforeAll(async () => {
    server = await startZookeeper({
      tickMs: 200,
      maxSessionMs: 60_000,
      properties: ["zookeeper.extendedTypesEnabled=true"],
    });
  });
  beforeEach(async () => {
    wire = new WireTrial(server.port);
    other = await wire.connect();
  });
  afterEach(async () => {
    await trial.close();
    await wire.removeAll(other, "/");
    await wire.close();
  });
  afterAll(() => server.close());

  const open = () => trial.open(`127.0.0.1:${server.port}/locks`);

  async function make(path: string, data = "", mode: CreateMode = "persistent"): Promise<string> {
    const parts = path.split("/").slice(1, -1);
    for (const [index] of parts.entries()) {
      const parent = `/${parts.slice(0, index + 1).join("/")}`;
      await other.send(create2(parent)).catch(() => {});
    }
    return (await other.send(create2(path, { data: Buffer.from(data), mode }))).path;
  }

  it("that are no entries are not counted, and stay", async () => {
    const locks = await open();
    const names = ["config", "lock-", "lock-12", "lock-abc", "done-report", "a-lock-0000000001-x"];
    const paths = await Promise.all(names.map((name) => make(`/locks/m/${name}`, "kept")));
    const lease = await locks.mutex("m").acquire();
    assert.equal((await locks.inspect("m")).holders.length, 1);
    await lease.release();
    for (const path of paths) {
      assert.equal((await other.send(getData(path))).data.toString(), "kept");
    }
  });

  it.for(["persistent", "container"] as const)(
    "that end with no session block the lock, and are not revoked: %s",
    async (mode) => {
      const locks = await open();
      const path = await make(`/locks/m/${CURATOR}0000000000`, "kept", mode);
      assert.equal(await locks.mutex("m").tryAcquire(), null);
      const [holder] = (await locks.inspect("m")).holders;
      assert.ok(holder);
      const revoking = locks.revoke("m", { token: holder.token, reason: "stuck" });
      await assert.rejects(revoking, { code: "HF_UNSUPPORTED" });
      assert.equal((await other.send(getData(path))).data.toString(), "kept");
    },
  );

  it.for(["", "no JSON", '{"meta":7}', '{"meta":{},"ttlMs":"x"}', "\0\u00ff"])(
    "with any data hold the lock until they leave: %j",
    async (data) => {
      const locks = await open();
      const path = await make(`/locks/m/${CURATOR}`, data, "ephemeral_sequential");
      const { holders } = await locks.inspect("m");
      assert.deepEqual([holders.length, holders[0]?.mode], [1, "exclusive"]);
      const waiting = locks.mutex("m").acquire();
      await untilWaiting(locks, "m");
      const token = holders[0]?.token ?? 0n;
      assert.equal(await locks.revoke("m", { token, reason: "stuck" }), true);
      assert.equal((await other.send(exists(path))).stat, null);
      const lease = await waiting;
      assert.ok(lease.token > token);
      await lease.release();
    },
  );

  it("do not take the lease of a holder whose data they overwrite", async () => {
    const locks = await open();
    const lease = await locks.mutex("m").acquire();
    const { names } = await other.send(childrenIn("/locks/m"));
    const path = `/locks/m/${names[0]}`;
    for (const data of ["", "garbage", '{"meta":{},"revoked":7}']) {
      await other.send(setData(path, Buffer.from(data)));
      await locks.inspect("m");
    }
    assert.equal(lease.state, "held");
    await lease.release();
  });

  it("beside marks are neither counted nor removed, also when they look old", async () => {
    const locks = await open();
    const path = await make("/locks/holdfast:once/job/done-report", "1\nkept");
    const tokenless = await make("/locks/holdfast:once/job/done-17x", "1\nkept");
    let runs = 0;
    const work = async (): Promise<void> => {
      runs += 1;
    };
    await locks.once("job", work, { keepMs: 60_000 });
    await locks.once("job", work, { keepMs: 60_000 });
    assert.equal(runs, 1);
    for await (const { name } of locks.list({ space: "once" })) assert.equal(name, "job");
    for (const one of [path, tokenless]) {
      assert.equal((await other.send(getData(one))).data.toString(), "1\nkept");
    }
  });

  it("that cannot be names of locks are passed over by a list", async () => {
    const locks = await open();
    for (const name of ["%", "%zz", "%41", "a:b", "plain"]) await make(`/locks/${name}/x`);
    const lease = await locks.mutex("m").acquire();
    const names: string[] = [];
    for await (const { name } of locks.list()) names.push(name);
    assert.deepEqual(names, ["m"]);
    await lease.release();
  });

  it("that take the place of a queue are told", async () => {
    const locks = await open();
    await make("/locks/m", "", "ephemeral");
    await assert.rejects(locks.mutex("m").acquire(), { message: /ephemerals.*\/locks\/m/ });
  });
});
