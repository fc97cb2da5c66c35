import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LockTrial } from "../../test/fixtures/lock-trial.js";
import { settled } from "../../test/fixtures/manual-runtime.js";
import { watch } from "../../test/fixtures/outcome.js";
import { channels } from "./events.js";

const request = new AsyncLocalStorage<string>();
const plain = [channels.renew, channels.release, channels.lost, channels.handoff];

let trial: LockTrial;
/** Channel, name of the lock, and the request that the event was published in. */
let heard: [string, string, string | undefined][];

const onEvent = (event: unknown, channel: string | symbol): void => {
  const { name } = event as { name: string };
  heard.push([String(channel), name, request.getStore()]);
};
const listen = (): void => {
  for (const channel of plain) subscribe(channel, onEvent);
};
const heardOn = (channel: string) => heard.filter(([one]) => one === channel);

beforeEach(() => {
  trial = new LockTrial();
  heard = [];
});

afterEach(() => {
  for (const channel of plain) unsubscribe(channel, onEvent);
});

describe("an event is published in the async context of its call", () => {
  it("for renewals and losses, which one timer finds for all leases", async () => {
    listen();
    for (const name of ["a", "b"]) {
      await request.run(`request of ${name}`, () => trial.locks.mutex(name).acquire());
    }
    await trial.runtime.advance(10_000);
    expect(heardOn("holdfast:renew")).toEqual([
      ["holdfast:renew", "a", "request of a"],
      ["holdfast:renew", "b", "request of b"],
    ]);
    await trial.loseTouch();
    expect(heardOn("holdfast:lost").sort()).toEqual([
      ["holdfast:lost", "a", "request of a"],
      ["holdfast:lost", "b", "request of b"],
    ]);
  });

  it("for handoffs, which the call of another makes", async () => {
    listen();
    const held = await trial.others.mutex("x").acquire();
    const turns = [1, 2, 3].map((n) =>
      request.run(`request ${n}`, () => watch(trial.locks.mutex("x").acquire())),
    );
    await settled();
    await request.run("request 0", () => held.release());
    for (const n of [1, 2]) {
      await trial.runtime.advance(0);
      await request.run(`request ${n}`, () => turns[n - 1]?.value?.release());
    }
    expect(heard).toEqual([
      ["holdfast:release", "x", "request 0"],
      ["holdfast:handoff", "x", "request 1"],
      ["holdfast:release", "x", "request 1"],
      ["holdfast:handoff", "x", "request 2"],
      ["holdfast:release", "x", "request 2"],
      ["holdfast:handoff", "x", "request 3"],
    ]);
  });

  it("for a handoff to a call that takes no turns", async () => {
    listen();
    const held = await trial.others.mutex("x").acquire();
    const reader = trial.locks.readWrite("x").read;
    const asked = request.run("request 1", () => watch(reader.acquire()));
    await settled();
    await request.run("request 0", () => held.release());
    await trial.runtime.advance(0);
    expect(asked.value?.state).toBe("held");
    expect(heardOn("holdfast:handoff")).toEqual([["holdfast:handoff", "x", "request 1"]]);
  });

  it("for a lease that is resumed", async () => {
    listen();
    const lease = await trial.others.mutex("x").acquire({ transferable: true });
    const handle = lease.detach();
    await request.run("request 1", () => trial.locks.resume(handle));
    await trial.loseTouch();
    expect(heardOn("holdfast:lost")).toContainEqual(["holdfast:lost", "x", "request 1"]);
  });

  it("and in none where the lease is older than the first subscriber", async () => {
    await request.run("request 1", () => trial.locks.mutex("x").acquire());
    listen();
    await trial.loseTouch();
    expect(heardOn("holdfast:lost")).toEqual([["holdfast:lost", "x", undefined]]);
  });
});
