/** Releases that leave a mark, where tries are lost and other clients come between them. */
import { beforeEach, describe, expect, it } from "vitest";
import { QuorumNode } from "../../../simulation/quorum/quorum-node.js";
import { ManualRuntime, settled } from "../../../test/fixtures/manual-runtime.js";
import { readNodeCall } from "../../../test/fixtures/node-call.js";
import type { Claim, Grant } from "../../contract/store.js";
import type { Driver } from "../redis-client/client.js";
import { QuorumGrant } from "./grants.js";
import { Layout } from "./layout.js";
import { Quorum, RedlockNode } from "./quorum.js";
import { RedlockStore } from "./redlock-store.js";
import { Releases } from "./release.js";

const TTL_MS = 4_000;
const KEEP = { ttlMs: 60_000, meta: {} };
const NAMES = ["a", "b", "c"];

/** Runs a verb of a node, or loses it or its answer. */
type Fault = (args: readonly string[], run: () => unknown) => unknown;

let runtime: ManualRuntime;
let servers: QuorumNode[];
let changes: number;
let fault: Fault;
let store: RedlockStore;

function lost(): never {
  throw new Error("The connection is lost.");
}

beforeEach(() => {
  runtime = new ManualRuntime();
  servers = NAMES.map(
    (name) =>
      new QuorumNode(
        name,
        1,
        () => runtime.nowMs,
        () => false,
      ),
  );
  changes = 0;
  fault = (_args, run) => run();
  const nodes = servers.map((server) => {
    server.initiate(NAMES.join(","), 30_000);
    const driver = {
      isCluster: false,
      keyPrefix: "",
      changes: () => changes,
      send: async (_key: string, _command: string, line: readonly string[]) => {
        const { keys, args } = readNodeCall(line);
        return fault(args, () => server.execute(keys[1] ?? "", args));
      },
      open: () => Promise.reject(new Error("No subscriptions here.")),
    } as unknown as Driver;
    return new RedlockNode(server.name, driver);
  });
  const terms = { namespace: "test", nodeTimeoutMs: 200, driftFactor: 0.01, maxTtlMs: 30_000 };
  store = new RedlockStore(nodes, { ...terms, bootstrap: "wait" }, runtime);
});

/** The values of the lock's key, of all nodes that have the key. */
const values = (): string[] => servers.flatMap(({ owners }) => owners);
const MARKS = NAMES.map(() => expect.stringMatching(/^done:/));

/** Runs timers until the work is done. */
async function done<T>(work: Promise<T>): Promise<T> {
  let isDone = false;
  const ended = work.finally(() => (isDone = true));
  ended.catch(() => {});
  for (let steps = 0; !isDone && steps < 1_000; steps += 1) await runtime.advance(10);
  return ended;
}

async function acquire(owner: string): Promise<Grant> {
  const claim = { space: "once", name: "job", owner, ttlMs: TTL_MS, span: 1, meta: {} };
  const result = await done(store.acquire({ ...claim, storeTimeoutMs: 1_000 } as Claim, null));
  expect(result.type).toBe("granted");
  return result as Grant;
}

describe("a release that leaves a mark, whose first try was lost", () => {
  let grant: Grant;
  let isStopped: boolean;
  beforeEach(async () => {
    grant = await acquire("a");
    isStopped = true;
    fault = (_args, run) => (isStopped ? lost() : run());
  });

  it("tells it as left when the second try has left it", async () => {
    const releasing = store.release(grant, TTL_MS, KEEP);
    await settled();
    isStopped = false;
    expect(await done(releasing)).toBe(true);
    expect(values()).toEqual(MARKS);
  });

  it("does not tell it as left after the lease was revoked", async () => {
    const releasing = store.release(grant, TTL_MS, KEEP);
    await settled();
    isStopped = false;
    expect(await store.revoke("once", "job", grant.token, "test")).toBe(true);
    expect(await done(releasing)).toBe(false);
    expect(values()).toEqual([]);
  });

  it("does not tell it as left after the process was stopped and another one ran", async () => {
    const releasing = store.release(grant, TTL_MS, KEEP);
    await settled();
    isStopped = false;
    runtime.block(TTL_MS);
    const next = await acquire("b");
    expect(await done(releasing)).toBe(false);
    expect(await done(store.release(next, TTL_MS))).toBe(true);
    expect(values()).toEqual([]);
  });
});

describe("a release that has left a mark", () => {
  const isMark = ([verb, , , , keepMs]: readonly string[]): boolean =>
    verb === "release" && Number(keepMs) > 0;

  it("is told so when the answers were lost", async () => {
    const grant = await acquire("a");
    let losses = 0;
    fault = (args, run) => {
      const answer = run();
      if (isMark(args) && losses++ < NAMES.length) lost();
      return answer;
    };
    expect(await done(store.release(grant, TTL_MS, KEEP))).toBe(true);
    expect(losses).toBe(2 * NAMES.length);
    expect(values()).toEqual(MARKS);
  });

  it("is told so when the client sent the command again", async () => {
    const grant = await acquire("a");
    fault = (args, run) => {
      if (!isMark(args)) return run();
      run();
      changes += 1;
      return run();
    };
    expect(await done(store.release(grant, TTL_MS, KEEP))).toBe(true);
  });

  it("is not told so when the mark was revoked before the next try", async () => {
    const grant = await acquire("a");
    let isLosing = true;
    fault = (args, run) => {
      const answer = run();
      if (isLosing && isMark(args)) lost();
      return answer;
    };
    const releasing = store.release(grant, TTL_MS, KEEP);
    await settled();
    isLosing = false;
    expect(await store.revoke("once", "job", grant.token, "test")).toBe(true);
    expect(await done(releasing)).toBe(false);
  });
});

describe("a release without a majority in its first try", () => {
  const [RELEASED, ABSENT] = [1, 0];

  /** Releases over nodes that give these answers, one after the other; null: none. */
  function release(...answers: (number | null)[][]): Promise<boolean> {
    const nodes = answers.map((ofNode, at) => {
      const send = async () => ofNode.shift() ?? lost();
      return new RedlockNode(`${at}`, { send, changes: () => 0 } as unknown as Driver);
    });
    const quorum = new Quorum(nodes, { nodeTimeoutMs: 50, driftFactor: 0 }, runtime);
    const claim = { space: "lock", name: "n", owner: "o", span: 1, ttlMs: TTL_MS } as Claim;
    const keys = new Layout("").keysOf("lock", "n");
    const grant = new QuorumGrant(claim, keys, 64, runtime.nowMs + TTL_MS);
    return done(new Releases(quorum).release(grant, runtime.nowMs + TTL_MS));
  }

  it("counts a node that released in that try, and is absent in the next", async () => {
    const [never, late] = [() => [ABSENT, ABSENT], () => [null, RELEASED]];
    expect(await release([RELEASED, ABSENT], never(), late(), late())).toBe(true);
  });

  it("does not count a node that was absent all along", async () => {
    const [never, late] = [() => [ABSENT, ABSENT], () => [null, RELEASED]];
    expect(await release(never(), never(), late(), late())).toBe(false);
  });
});
