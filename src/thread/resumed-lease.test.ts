import { MessageChannel } from "node:worker_threads";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ManualRuntime } from "../../test/fixtures/manual-runtime.js";
import { ScriptedStore } from "../../test/fixtures/scripted-store.js";
import { Holdfast } from "../api/holdfast.js";
import { ExitSignal } from "./exit-release.js";
import type { FromThread, ToThread } from "./messages.js";
import { Backlog, Outbox } from "./outbox.js";
import { StoreHost } from "./store-host.js";
import { ThreadConnection } from "./thread-connection.js";
import { ThreadStore } from "./thread-store.js";

let store: ScriptedStore;
let caller: ThreadStore;

beforeEach(() => {
  const runtime = new ManualRuntime();
  store = new ScriptedStore(runtime);
  const { port1, port2 } = new MessageChannel();
  const backlog = new Backlog();
  const host = new StoreHost(store, new Outbox<FromThread>(port2, runtime.timers.soon, backlog));
  port2.on("message", (messages: readonly ToThread[]) => {
    for (const message of messages) host.receive(message, () => {});
  });
  const thread = { onSilence: vi.fn(), onClose: async () => port2.close() };
  const connection = new ThreadConnection(thread, port1, backlog, runtime.timers);
  const { name, traits } = store;
  const opened = { name, namespace: undefined, traits, explains: false, examines: false };
  caller = new ThreadStore(opened, runtime, connection, new ExitSignal());
});
afterEach(() => caller.close());

it.each([true, false])("a process resumes its own lease, detached before: %s", async (detached) => {
  const locks = new Holdfast(caller);
  vi.spyOn(store, "resume").mockImplementation(async (claim, token) =>
    store.grantFor(claim, token),
  );
  const acquiring = locks.mutex("a").acquire({ transferable: true, ttlMs: 30_000 });
  await expect.poll(() => store.asked).toHaveLength(1);
  store.latest.grant(10n);
  const lease = await acquiring;
  const { handle } = lease;
  if (detached) lease.detach();
  const resumed = await locks.resume(handle ?? "");
  expect(resumed?.state).toBe("held");
  expect(store.released).toEqual([]);
});
