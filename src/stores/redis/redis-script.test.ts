import { expect, it } from "vitest";
import type { Execution } from "../../families/ledger/arbiter.js";
import type { Command, Reply } from "../../rules/ledger-command.js";
import type { Driver } from "../redis-client/client.js";
import { Layout } from "./layout.js";
import { RedisScript } from "./redis-script.js";

const driver: Partial<Driver> = { isCluster: false };
const script = new RedisScript(driver as Driver, new Layout("n", false, "", 0));

const release: Command = { type: "release", key: "l:a", owner: "o", tombstoneUs: 0, keep: null };
const inspect: Command = { type: "inspect", key: "l:b" };
const reply: Reply = { type: "released", held: true, offerUs: 0, more: false };

function answers(...executions: readonly (Partial<Execution> | Error)[]) {
  const left = [...executions];
  return async (): Promise<Execution> => {
    const next = left.shift();
    if (next instanceof Error) throw next;
    return { nowUs: 1, node: "n/1", replies: [reply], ...next };
  };
}

it("believes no answer of a batch that comes from another server than the first", async () => {
  const call = answers({ nowUs: 5 }, { nowUs: 9_000_000, node: "m/2", resent: true });
  const batch = await script.batch([release, inspect], call);
  expect(batch).toMatchObject({ nowUs: 5, node: "n/1", resent: true });
  expect(batch.replies).toEqual([reply, expect.objectContaining({ outcome: "unknown" })]);
});

it("counts deadlines from the earliest sending of a batch", async () => {
  const later = await script.batch([release, inspect], answers({ sentMs: 8 }, { sentMs: 7 }));
  expect(later.sentMs).toBe(7);
  const once = await script.batch([release, inspect], answers({ sentMs: 8 }, {}));
  expect(once.sentMs).toBeUndefined();
});

it("answers the calls of a batch that did not fail, and fails if all did", async () => {
  const lost = new Error("Connection is closed.");
  const batch = await script.batch([release, inspect], answers(lost, { node: "m/2" }));
  expect(batch.replies).toEqual([expect.objectContaining({ outcome: "unknown" }), reply]);
  const failed = script.batch([release, inspect], answers(lost, new Error("second")));
  await expect(failed).rejects.toBe(lost);
});
