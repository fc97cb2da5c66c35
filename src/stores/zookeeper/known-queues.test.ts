import { beforeEach, expect, it } from "vitest";
import { ManualPort } from "../../../test/fixtures/manual-port.js";
import { KnownQueues } from "./known-queues.js";

const MINUTE_MS = 60_000;
const QUIET = { childCount: 1, dataBytes: 0, version: 7 };
const IS_QUIET = { quietVersion: 7 };
const IS_THERE = { quietVersion: null };

let port: ManualPort;
let known: KnownQueues;

beforeEach(() => {
  port = new ManualPort();
  known = new KnownQueues(port.clock);
});

it("knows a queue for a minute after it was seen", async () => {
  expect(known.guess("/a")).toBeNull();
  known.saw("/a", QUIET);
  await port.advance(MINUTE_MS - 1);
  expect(known.guess("/a")).toEqual(IS_QUIET);
  await port.advance(1);
  expect(known.guess("/a")).toBeNull();
});

it("forgets a queue that is gone", () => {
  known.saw("/a", QUIET);
  known.saw("/a", null);
  expect(known.guess("/a")).toBeNull();
});

it("takes a queue with several entries, or with data, for no quiet one", () => {
  known.saw("/a", { ...QUIET, childCount: 2 });
  known.saw("/b", { ...QUIET, dataBytes: 1 });
  expect([known.guess("/a"), known.guess("/b")]).toEqual([IS_THERE, IS_THERE]);
});

it("does not stamp a queue whose version would stand for any version", () => {
  known.saw("/a", { ...QUIET, version: -1 });
  expect(known.guess("/a")).toEqual(IS_THERE);
  known.saw("/a", { ...QUIET, version: -2 });
  expect(known.guess("/a")).toEqual({ quietVersion: -2 });
});

it("remembers that it may not write a queue, as long as the queue is there", () => {
  known.saw("/a", QUIET);
  known.sawRefusal("/a");
  known.saw("/a", QUIET);
  expect(known.guess("/a")).toEqual(IS_THERE);
  known.saw("/a", null);
  known.saw("/a", QUIET);
  expect(known.guess("/a")).toEqual(IS_QUIET);
});

it("takes no version twice: a stamp changes it, and an answer shows the new one", () => {
  known.saw("/a", QUIET);
  known.onStamp("/a");
  expect(known.guess("/a")).toEqual(IS_THERE);
  known.saw("/a", { ...QUIET, version: 8 });
  expect(known.guess("/a")).toEqual({ quietVersion: 8 });
});

it("forgets the queue that was seen longest ago beyond 10,000", () => {
  for (let index = 0; index <= 10_000; index += 1) known.saw(`/${index}`, QUIET);
  expect([known.guess("/0"), known.guess("/1")]).toEqual([null, IS_QUIET]);
});
