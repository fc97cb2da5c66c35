import { beforeEach, expect, it } from "vitest";
import { ManualPort, settled } from "../../../test/fixtures/manual-port.js";
import { watch } from "../../../test/fixtures/outcome.js";
import { StoreError } from "../../errors/index.js";
import { LastFailure } from "./last-failure.js";
import type { Sequencer } from "./sequencer.js";

const silence = new StoreError("The store did not answer.", { outcome: "unknown" });
const refused = new Error("connect ECONNREFUSED a:1");
let port: ManualPort;
let last: LastFailure;

beforeEach(() => {
  port = new ManualPort();
  last = new LastFailure({ port } as unknown as Sequencer);
});

it("explains a silence by the failure before it, while that is recent", async () => {
  last.note(refused);
  await port.advance(1_999);
  expect((await last.explain(silence)).message).toBe(`${silence.message} ${refused.message}`);
  await port.advance(1);
  const late = watch(last.explain(silence));
  await port.advance(2_000);
  expect(late.value).toBe(silence);
});

it("waits for the next failure, and keeps nothing once that came or time is over", async () => {
  const [told, untold] = [watch(last.explain(silence)), port.alarms];
  await settled();
  expect(port.alarms).toBe(untold + 1);
  last.note(refused);
  await settled();
  expect(told.value?.cause).toBe(refused);
  expect(port.alarms).toBe(untold);
});
