import { beforeEach, describe, expect, it } from "vitest";
import { ManualRuntime, settled } from "../../../test/fixtures/manual-runtime.js";
import { ZookeeperDouble } from "../../../test/fixtures/zookeeper-double.js";
import { KnownQueues } from "./entry-batch.js";
import { Layout } from "./layout.js";
import { MarkSweep, ServerClock } from "./marks.js";
import { QueueReader } from "./queues.js";
import { WatchingSession } from "./watches.js";

const EVERY_MS = 10 * 60_000;
/** The double made all znodes at the time 0. */
const NOW_MS = 5_000;

describe("a sweep of marks", () => {
  let runtime: ManualRuntime;
  let server: ZookeeperDouble;
  let sweep: MarkSweep;

  beforeEach(() => {
    runtime = new ManualRuntime();
    server = new ZookeeperDouble();
    const clock = new ServerClock(runtime.clock);
    clock.learn(NOW_MS);
    const layout = new Layout("", "", "mutex");
    const reader = new QueueReader(layout, clock, new KnownQueues(runtime.clock));
    const session = new WatchingSession(server.ensemble(runtime), "the test");
    sweep = new MarkSweep({ session, layout, reader, timers: runtime.timers }, runtime);
  });

  const leave = (name: string, data: string) =>
    server.znodes.set(`/holdfast:once/${name}/done-7`, data);

  const left = () => [...server.znodes.keys()].map((path) => path.split("/")[2]);

  it("removes the marks of all names whose time is over, and no others", async () => {
    leave("over", "1000\n");
    leave("counts", "60000\n");
    leave("over-too", "4999\n");
    leave("garbage", "soon");
    sweep.onMark();
    await settled();
    await settled();
    expect(left()).toEqual(["counts", "garbage"]);
  });

  it("follows the first mark of a client, and then one every ten minutes", async () => {
    sweep.onMark();
    await settled();
    leave("over", "1000\n");
    await runtime.advance(EVERY_MS - 1);
    sweep.onMark();
    await settled();
    expect(left()).toEqual(["over"]);
    await runtime.advance(1);
    sweep.onMark();
    await settled();
    await settled();
    expect(left()).toEqual([]);
  });

  it("that fails is followed by the next one", async () => {
    leave("over", "1000\n");
    server.onRequest = (_, connection) => {
      connection.end();
      return null;
    };
    sweep.onMark();
    await runtime.advance(EVERY_MS);
    server.onRequest = (request) => server.answer(request);
    sweep.onMark();
    await runtime.advance(1_000);
    expect(left()).toEqual([]);
  });
});

it("shows the wall clock of this machine until a server has told its time", () => {
  const runtime = new ManualRuntime(1_000);
  const clock = new ServerClock(runtime.clock);
  expect([clock.isKnown, clock.nowMs()]).toEqual([false, 1_700_000_001_000]);
});

it("shows the time of the server and the time since, whatever the wall clock does", () => {
  const runtime = new ManualRuntime();
  let wallUs = 0;
  const clock = new ServerClock({ ...runtime.clock, wallUs: () => wallUs });
  clock.learn(5_000);
  runtime.block(300);
  wallUs = 9e15;
  expect([clock.isKnown, clock.nowMs()]).toEqual([true, 5_300]);
});

it("follows the server that answered last, also back in time", () => {
  const clock = new ServerClock(new ManualRuntime().clock);
  clock.learn(5_000);
  clock.learn(4_000);
  expect(clock.nowMs()).toBe(4_000);
});
