import { beforeEach, expect, it } from "vitest";
import { ManualRuntime, settled } from "../../../test/fixtures/manual-runtime.js";
import { watch } from "../../../test/fixtures/outcome.js";
import { StoreError } from "../../errors/index.js";
import { LastFailure } from "./last-failure.js";
import type { Sequencer } from "./sequencer.js";

const silence = new StoreError("The store did not answer.", { outcome: "unknown" });
const refused = new Error("connect ECONNREFUSED a:1");
let runtime: ManualRuntime;
let last: LastFailure;

beforeEach(() => {
  runtime = new ManualRuntime();
  last = new LastFailure({ runtime } as unknown as Sequencer);
});

it("explains a silence by the failure before it, while that is recent", async () => {
  last.note(refused);
  await runtime.advance(1_999);
  expect((await last.explain(silence)).message).toBe(`${silence.message} ${refused.message}`);
  await runtime.advance(1);
  const late = watch(last.explain(silence));
  await runtime.advance(2_000);
  expect(late.value).toBe(silence);
});

it("waits for the next failure, and keeps nothing once that came or time is over", async () => {
  const [told, untold] = [watch(last.explain(silence)), runtime.alarms];
  await settled();
  expect(runtime.alarms).toBe(untold + 1);
  last.note(refused);
  await settled();
  expect(told.value?.cause).toBe(refused);
  expect(runtime.alarms).toBe(untold);
});
