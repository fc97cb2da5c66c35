import { MessageChannel, type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import { afterEach, beforeEach, expect, it } from "vitest";
import { claimOf } from "../../test/fixtures/ledger-server.js";
import { ManualRuntime, settled } from "../../test/fixtures/manual-runtime.js";
import { ScriptedStore } from "../../test/fixtures/scripted-store.js";
import type { FromThread, GrantCopy } from "./messages.js";
import { Outbox } from "./outbox.js";
import { SharedGrant } from "./shared-grant.js";
import { StoreHost } from "./store-host.js";

let time: ManualRuntime;
let store: ScriptedStore;
let host: StoreHost;
let channel: MessageChannel;

beforeEach(() => {
  time = new ManualRuntime();
  store = new ScriptedStore(time);
  channel = new MessageChannel();
  host = new StoreHost(store, new Outbox<FromThread>(channel.port1, time.timers.soon));
});

afterEach(() => channel.port1.close());

function* received(port: MessagePort): Iterable<FromThread> {
  for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) {
    yield* next.message as readonly FromThread[];
  }
}

/** The caller asks for the lock, and does not wait for it. */
function ask(id: number): void {
  const args = [claimOf(`o${id}`), null];
  host.receive({ type: "call", id, name: "acquire", args }, () => {});
}

async function takeGrant(): Promise<SharedGrant> {
  ask(1);
  store.latest.grant(7n);
  await settled();
  const [answer] = [...received(channel.port2)];
  const { value } = answer as Extract<FromThread, { type: "answer" }>;
  return new SharedGrant((value as GrantCopy).memory);
}

it("ends its grants before it gives them back, when it is abandoned", async () => {
  const shared = await takeGrant();
  let wasOver = false;
  store.onRelease = async () => {
    wasOver = shared.isOver;
    return true;
  };
  await host.abandon("broken");
  expect(wasOver).toBe(true);
  expect(store.isClosed).toBe(true);
});

it("gives back a grant that comes while it is abandoned, and does not tell of it", async () => {
  let finish = (): void => {};
  store.onRelease = () =>
    new Promise((resolve) => {
      finish = () => resolve(true);
    });
  await takeGrant();
  ask(2);
  const { grant } = store.latest;
  const abandoned = host.abandon("broken");
  grant(8n);
  finish();
  await settled();
  expect(store.released.map((release) => release.grant.token)).toEqual([7n, 8n]);
  finish();
  await abandoned;
  await settled();
  const types = [...received(channel.port2)].map(({ type }) => type);
  expect(types).toEqual(["gone", "failure"]);
});

it("is closed in time, if a store that failed never answers", async () => {
  await takeGrant();
  store.onRelease = () => new Promise(() => {});
  ask(2);
  const abandoned = host.abandon("broken");
  await time.advance(1_000);
  await abandoned;
  expect(store.isClosed).toBe(true);
});
