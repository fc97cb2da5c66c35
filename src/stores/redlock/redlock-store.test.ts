import { expect, it } from "vitest";
import { readVote } from "../../../simulation/quorum/quorum-request.js";
import { ManualRuntime, settled } from "../../../test/fixtures/manual-runtime.js";
import { readNodeCall } from "../../../test/fixtures/node-call.js";
import { Holdfast } from "../../api/holdfast.js";
import type { Claim, Grant } from "../../contract/store.js";
import { AcquireWait } from "../../lease/acquire-wait.js";
import type { Driver, OwnConnection } from "../redis-client/client.js";

import { MAX_TTL_MS } from "./membership.js";
import { RedlockNode } from "./quorum.js";
import { RedlockStore } from "./redlock-store.js";

const claim: Claim = {
  ...{ space: "lock", name: "m", owner: "o1", mode: "exclusive", weight: 1, limit: 1 },
  ...{
    ttlMs: 10_000,
    meta: {},
    span: 1,
    transferable: true,
    ownSession: true,
    storeTimeoutMs: 5_000,
  },
};
const times = { nodeTimeoutMs: 50, driftFactor: 0.01, maxTtlMs: 30_000 };
const settings = { namespace: "", bootstrap: "wait", ...times } as const;

/** A node that resumes the lease, and ends it before its answer to the resume has arrived. */
function revoking(name: string): RedlockNode {
  return answering(name, {
    raise: 1,
    resume: ["G", claim.ttlMs],
    look: [-2, "", "65 V o1 by hand", []],
  });
}

/** A node that gives the same answer to every request with the same verb. */
function answering(name: string, answers: Readonly<Record<string, unknown>>): RedlockNode {
  const driver: Partial<Driver> = {
    send: async (_key, _command, args) => answers[readNodeCall(args).args[0] ?? ""],
    open: () => new Promise(() => {}),
  };
  return new RedlockNode(name, driver as Driver);
}

/** The answer of a node that an owner holds the lock. */
function held(owner: string): unknown[] {
  return ["H", 64, 5_000, owner, `64 H ${owner} 64 1 5000 c {}`, 0];
}

/** A node that grants the lock to the first owner, and says that it revoked it before that. */
function hasty(name: string): RedlockNode {
  let listener: (message: string) => void = () => {};
  let first = "";
  const connection: Partial<OwnConnection> = {
    subscribe: async (channel, onMessage) => {
      if (!channel.includes("/")) listener = onMessage;
    },
    send: async () => "",
    onClose: () => {},
    close: () => {},
  };
  const driver: Partial<Driver> = {
    send: async (_key, _command, line) => {
      const { args } = readNodeCall(line);
      if (args[0] !== "vote") return 1;
      const { owner, ballot } = readVote(args.slice(1));
      first ||= owner;
      if (owner === first) listener(`x ${owner} ${ballot} by hand`);
      return ["G", claim.ttlMs];
    },
    open: async () => connection as OwnConnection,
    changes: () => 0,
  };
  return new RedlockNode(name, driver as Driver);
}

it("a revocation by the client itself ends its grant, or the votes for it", async () => {
  const runtime = new ManualRuntime();
  const votes: (() => void)[] = [];
  const tokens: bigint[] = [];
  const nodes = ["a", "b", "c"].map((name) => {
    const driver: Partial<Driver> = {
      send: async (_key, _command, line) => {
        const { args } = readNodeCall(line);
        if (args[0] !== "vote") return 1;
        tokens.push(BigInt(readVote(args.slice(1)).ballot));
        await new Promise<void>((resolve) => votes.push(resolve));
        return ["G", claim.ttlMs];
      },
      open: () => new Promise(() => {}),
      changes: () => 0,
    };
    return new RedlockNode(name, driver as Driver);
  });
  const store = new RedlockStore(nodes, settings, runtime);
  const asked = store.acquire(claim, new AcquireWait(runtime, 5_000, undefined));
  await settled();
  expect(await store.revoke("lock", "m", tokens[0] as bigint, "early")).toBe(true);
  for (const vote of votes.splice(0)) vote();
  await settled();
  for (const vote of votes) vote();
  const grant = (await asked) as Grant;
  expect(grant.token).toBe(tokens.at(-1));
  expect(grant.token).toBeGreaterThan(tokens[0] as bigint);
  expect(await store.revoke("lock", "other", grant.token, "stuck")).toBe(true);
  expect(grant.loss).toBeNull();
  expect(await store.revoke("lock", "m", grant.token, "stuck")).toBe(true);
  expect(grant.loss).toEqual({ reason: "revoked", detail: "stuck" });
});

it("a revocation that arrives before the votes are counted ends the grant", async () => {
  const runtime = new ManualRuntime();
  const store = new RedlockStore(["a", "b", "c"].map(hasty), settings, runtime);
  const wait = new AcquireWait(runtime, 5_000, undefined);
  const result = await store.acquire(claim, wait);
  expect(result).toMatchObject({ type: "granted" });
  expect((result as Grant).claim.owner).not.toBe(claim.owner);
});

it("a lease that is revoked during its resume hears of the revocation", async () => {
  const store = new RedlockStore(["a", "b", "c"].map(revoking), settings, new ManualRuntime());
  const grant = await store.resume(claim, 64n);
  await expect.poll(() => grant?.loss).toEqual({ reason: "revoked", detail: "by hand" });
});

it("a lease never outlives what nodes remember of it", async () => {
  const nodes = ["a", "b", "c"].map((name) =>
    answering(name, { raise: 1, resume: ["G", 1], vote: 1 }),
  );
  const store = new RedlockStore(nodes, settings, new ManualRuntime());
  const days = { ...claim, ttlMs: MAX_TTL_MS + 1 };
  const refusal = { code: "HF_INVALID_OPTION" };
  await expect(store.acquire(days, null)).rejects.toMatchObject(refusal);
  await expect(store.resume(days, 64n)).rejects.toMatchObject(refusal);
  const grant = (await store.acquire({ ...claim, ttlMs: MAX_TTL_MS }, null)) as Grant;
  const renewals = await store.renew([{ grant, ttlMs: days.ttlMs }]);
  expect(renewals).toMatchObject([{ type: "unknown", error: refusal }]);
});

it("a try that was aborted between two rounds does not keep the process alive", async () => {
  const runtime = new ManualRuntime();
  const split = (name: string, vote: unknown) => answering(name, { raise: 1, vote, release: 1 });
  const nodes = [split("a", 1), split("b", held("x")), split("c", held("y"))];
  const holdfast = new Holdfast(new RedlockStore(nodes, settings, runtime));
  const controller = new AbortController();
  const asked = holdfast.mutex("m").tryAcquire({ ttlMs: 10_000, signal: controller.signal });
  const outcome = asked.catch((error: unknown) => error);
  await runtime.advance(1);
  expect(runtime.keepsAlive).toBe(true);
  controller.abort("enough");
  expect(await outcome).toBe("enough");
  await settled();
  expect(runtime.keepsAlive).toBe(false);
});

it("a try that meets its own vote, which came too late, is made again", async () => {
  const runtime = new ManualRuntime();
  const owners: string[] = [];
  const driver: Partial<Driver> = {
    send: async (_key, _command, line) => {
      const { args } = readNodeCall(line);
      if (args[0] !== "vote") return 1;
      const [first = ""] = owners;
      owners.push(readVote(args.slice(1)).owner);
      // The first vote is not answered in time, and given back after the second one.
      if (owners.length === 1) await new Promise(() => {});
      return owners.length === 2 ? held(first) : 1;
    },
    open: () => new Promise(() => {}),
    changes: () => 0,
  };
  const store = new RedlockStore([new RedlockNode("a", driver as Driver)], settings, runtime);
  const asked = store.acquire(claim, null);
  await runtime.advance(1_000);
  expect(await asked).toMatchObject({ type: "granted" });
  expect(owners).toHaveLength(3);
});
