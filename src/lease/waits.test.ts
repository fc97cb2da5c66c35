import { expect, it } from "vitest";
import { ManualRuntime } from "../../test/fixtures/manual-runtime.js";
import { Waits } from "./waits.js";

const options = { waitMs: 1_000, signal: undefined };

it("a wait that is over keeps no other wait alive", () => {
  const waits = new Waits(new ManualRuntime());
  const [first, second, third] = [1, 2, 3].map(() => waits.start(options));
  if (!first || !second || !third) throw new Error("three waits were started");
  waits.settle(second);
  expect([second.before, second.behind]).toEqual([null, null]);
  expect([first.behind, third.before]).toEqual([third, first]);
});

it("the end of the client ends the waits that are under way, each once", () => {
  const waits = new Waits(new ManualRuntime());
  const [first, second] = [waits.start(options), waits.start(options)];
  waits.settle(first);
  waits.close();
  expect([first.endedBy, second.endedBy]).toEqual([null, "closed"]);
});
