import { expect, it, vi } from "vitest";
import { ManualRuntime, settled } from "../../test/fixtures/manual-runtime.js";
import { watch } from "../../test/fixtures/outcome.js";
import { ScriptedStore } from "../../test/fixtures/scripted-store.js";
import { StoreError } from "../errors/index.js";
import { explain } from "./explain.js";

const silence = new StoreError("silent", { outcome: "unknown" });

it("has the store look once, however long that takes", async () => {
  const runtime = new ManualRuntime();
  const store = new ScriptedStore(runtime);
  const look = vi.fn(() => new Promise<never>(() => {}));
  store.explain = look;
  const explained = watch(explain(store, silence, 100));
  await runtime.advance(99);
  expect(explained.state).toBe("pending");
  await runtime.advance(2);
  expect(explained.value).toBe(silence);
  expect(look).toHaveBeenCalledOnce();
});

it("takes a reason that came while the event loop was blocked", async () => {
  const runtime = new ManualRuntime();
  const store = new ScriptedStore(runtime);
  const reason = new StoreError("no server", { outcome: "unknown" });
  let found = (_: StoreError): void => {};
  store.explain = () =>
    new Promise((resolve) => {
      found = resolve;
    });
  const explained = watch(explain(store, silence, 100));
  runtime.block(500);
  // Timers come before I/O: the limit is over when the answer is read.
  runtime.timers.after(0, () => found(reason));
  await runtime.advance(0);
  await settled();
  expect(explained.value).toBe(reason);
});
