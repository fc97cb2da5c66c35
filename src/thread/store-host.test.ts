import { MessageChannel } from "node:worker_threads";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { claimOf } from "../../test/fixtures/ledger-server.js";
import { ManualRuntime } from "../../test/fixtures/manual-runtime.js";
import { watch } from "../../test/fixtures/outcome.js";
import { ScriptedStore } from "../../test/fixtures/scripted-store.js";
import type { AcquireResult, Grant } from "../contract/store.js";
import { AcquireWait } from "../lease/acquire-wait.js";
import { ExitSignal } from "./exit-release.js";
import type { FromThread, ToThread } from "./messages.js";
import { Backlog, Outbox } from "./outbox.js";
import { StoreHost } from "./store-host.js";
import { ThreadConnection } from "./thread-connection.js";
import { ThreadStore } from "./thread-store.js";

/** Both ends of a link, in one thread: the test answers for the store at the far end. */
let runtime: ManualRuntime;
let store: ScriptedStore;
let caller: ThreadStore;

beforeEach(() => {
  runtime = new ManualRuntime();
  store = new ScriptedStore(runtime);
  const { port1, port2 } = new MessageChannel();
  const backlog = new Backlog();
  const host = new StoreHost(store, new Outbox<FromThread>(port2, runtime.timers.soon, backlog));
  port2.on("message", (messages: readonly ToThread[]) => {
    for (const message of messages) host.receive(message, () => {});
  });
  const thread = { onSilence: vi.fn(), onClose: async () => port2.close() };
  const link = new ThreadConnection(thread, port1, backlog, runtime.timers);
  const { name, traits } = store;
  const opened = { name, namespace: undefined, traits, explains: false, examines: false };
  caller = new ThreadStore(opened, runtime, link, new ExitSignal());
});

afterEach(() => caller.close());

/** Asks by the link, until the store at its far end has the request. */
async function ask(wait: AcquireWait | null) {
  const asked = watch(caller.acquire(claimOf("a", { ttlMs: 1_000 }), wait));
  await expect.poll(() => store.asked).toHaveLength(1);
  return asked;
}

/** Answers the second request of the same call. */
async function grantNext(token: bigint): Promise<void> {
  await expect.poll(() => store.asked).toHaveLength(2);
  expect(new Set(store.asked.map(({ claim }) => claim.owner)).size).toBe(2);
  store.latest.grant(token);
}

const waiting = (): AcquireWait => new AcquireWait(runtime, 60_000, undefined);

describe("a grant that has ended in the thread, before the thread could keep it", () => {
  const endGrant = (): Grant => {
    const grant = store.latest.grant(10n);
    grant.deadlineMs = Number.NEGATIVE_INFINITY;
    return grant;
  };

  it("is given back, and asked for again", async () => {
    const asked = await ask(waiting());
    const grant = endGrant();
    await grantNext(20n);
    await expect.poll(() => asked.value).toMatchObject({ type: "granted", token: 20n });
    expect(store.released).toMatchObject([{ grant }]);
  });

  it("is a held lock to a call that does not wait", async () => {
    const asked = await ask(null);
    const grant = endGrant();
    await expect.poll(() => asked.value?.type).toBe("busy");
    expect(store.released).toMatchObject([{ grant }]);
  });

  it("is gone for a caller that resumes it", async () => {
    vi.spyOn(store, "resume").mockImplementation(async (claim, token) => {
      const grant = store.grantFor(claim, token);
      return Object.assign(grant, { deadlineMs: Number.NEGATIVE_INFINITY });
    });
    expect(await caller.resume(claimOf("a"), 10n, null)).toBeNull();
  });
});

describe("a grant that is revoked on its way from the thread", () => {
  const revokeGrant = async (): Promise<void> => {
    const grant = store.latest.grant(10n);
    // No message can arrive before all promises of this turn are settled.
    while (grant.listener === null) await Promise.resolve();
    store.tell(grant, "revoked");
  };

  it("is asked for again, however often that happens", async () => {
    const asked = await ask(waiting());
    for (let round = 1; round < 5; round += 1) {
      await revokeGrant();
      await expect.poll(() => store.asked).toHaveLength(round + 1);
    }
    store.latest.grant(20n);
    await expect.poll(() => asked.value).toMatchObject({ type: "granted", token: 20n });
  });

  it("is a held lock to a call that does not wait", async () => {
    const asked = await ask(null);
    await revokeGrant();
    const busy: AcquireResult = { type: "busy", holder: null, mark: null };
    await expect.poll(() => asked.value).toEqual(busy);
  });
});

it("does not keep a grant again that was detached", async () => {
  const asked = await ask(waiting());
  store.latest.grant(10n);
  await expect.poll(() => asked.state).toBe("resolved");
  const grant = asked.value as Grant;
  const terms = { ttlMs: 1_000, renew: true, graceMs: 500, endMs: runtime.nowMs + 60_000 };
  caller.renewer.keep(grant, terms);
  caller.detach(grant);
  await caller.inspect("lock", "a");
  caller.renewer.keep(grant, { ...terms, renew: false });
  // An answer comes behind the messages before it.
  await caller.inspect("lock", "a");
  await runtime.advance(1_000);
  expect(store.released).toEqual([]);
});

it("tells a caller that its grant expired before the thread took over", async () => {
  const asked = await ask(waiting());
  store.latest.grant(10n);
  await expect.poll(() => asked.state).toBe("resolved");
  const grant = asked.value as Grant;
  runtime.block(1_000);
  const terms = { ttlMs: 1_000, renew: true, graceMs: 0, endMs: runtime.nowMs + 60_000 };
  caller.renewer.keep(grant, terms);
  await expect.poll(() => grant.loss).toEqual({ reason: "expired", detail: "" });
});
