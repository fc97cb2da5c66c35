/** Many calls for one lock at once, from one process and from several, on real servers. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect } from "../../src/index.js";
import { etcdUrl } from "../etcd/harness.js";
import { isFull } from "../fixtures/depth.js";
import { startEtcd } from "../servers/etcd.js";
import { startZookeeper } from "../servers/zookeeper.js";
import { zookeeperUrl } from "../zookeeper/harness.js";

/** A thousand need the whole machine for a minute. */
const CALLS = isFull ? 1_000 : 300;
const PROCESSES = 4;
const WAIT_MS = 60_000;

const order = Array.from({ length: CALLS }, (_, index) => index);

describe.each([
  { name: "etcd", start: () => startEtcd(), urlOf: etcdUrl },
  {
    name: "zookeeper",
    start: () => startZookeeper({ tickMs: 100, minSessionMs: 100, maxSessionMs: 120_000 }),
    urlOf: zookeeperUrl,
  },
])("many calls at once on $name", ({ start, urlOf }) => {
  let server: Awaited<ReturnType<typeof start>>;
  beforeAll(async () => {
    server = await start();
  });
  afterAll(() => server.close());

  const url = (): string => urlOf([server.port]).href;

  test("of one process are all served, in their order", async () => {
    const locks = await connect(url(), { waitMs: WAIT_MS });
    const served: number[] = [];
    await Promise.all(order.map((index) => locks.mutex("one").run(() => served.push(index))));
    expect(served).toEqual(order);
    await locks.close();
  });

  test("of one process that do not wait are answered: one is granted the lock", async () => {
    const locks = await connect(url());
    const tries = await Promise.all(order.map(() => locks.mutex("tried").tryAcquire()));
    const [lease, ...more] = tries.filter((one) => one !== null);
    expect(more).toEqual([]);
    expect(await lease?.release()).toBe(true);
    expect((await locks.inspect("tried")).waiters).toEqual([]);
    await locks.close();
  });

  test("of one process may all give up, and each is told who holds", async () => {
    const locks = await connect(url());
    const holder = await locks.mutex("held").acquire({ meta: { who: "the holder" } });
    const calls = order.map(() => locks.mutex("held").acquire({ waitMs: 8_000 }));
    const reasons = (await Promise.allSettled(calls)).map((call) =>
      call.status === "rejected" ? call.reason : "granted",
    );
    for (const reason of reasons) {
      expect(reason).toMatchObject({ code: "HF_ACQUIRE_TIMEOUT" });
      expect(reason.message).toContain(`token ${holder.token}`);
    }
    expect((await locks.inspect("held")).waiters).toEqual([]);
    await holder.release();
    await locks.close();
  });

  test("of several processes are all served", async () => {
    const program = new URL("crowd-process.mjs", import.meta.url);
    const counts = Array.from({ length: PROCESSES }, async () => {
      const child = fork(program, [url(), String(CALLS / PROCESSES)], { stdio: "inherit" });
      const [[count], [code]] = await Promise.all([once(child, "message"), once(child, "exit")]);
      return { count, code };
    });
    const all = await Promise.all(counts);
    expect(all).toEqual(all.map(() => ({ count: CALLS / PROCESSES, code: 0 })));
  });
});
