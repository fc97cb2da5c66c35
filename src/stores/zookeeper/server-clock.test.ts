import { expect, it } from "vitest";
import { ManualPort } from "../../../test/fixtures/manual-port.js";
import { ServerClock } from "./server-clock.js";

it("shows the wall clock of this machine until a server has told its time", () => {
  const port = new ManualPort(1_000);
  const clock = new ServerClock(port.clock);
  expect([clock.isKnown, clock.nowMs()]).toEqual([false, 1_700_000_001_000]);
});

it("shows the time of the server and the time since, whatever the wall clock does", () => {
  const port = new ManualPort();
  let wallUs = 0;
  const clock = new ServerClock({ ...port.clock, wallUs: () => wallUs });
  clock.learn(5_000);
  port.block(300);
  wallUs = 9e15;
  expect([clock.isKnown, clock.nowMs()]).toEqual([true, 5_300]);
});

it("follows the server that answered last, also back in time", () => {
  const clock = new ServerClock(new ManualPort().clock);
  clock.learn(5_000);
  clock.learn(4_000);
  expect(clock.nowMs()).toBe(4_000);
});
