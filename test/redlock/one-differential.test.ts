/**
 * Compares the rules of a single server in TypeScript with the Lua script on a real server, command
 * by command.
 */

import fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { driverOf } from "../../src/stores/redis-client/supported-clients.js";
import { SingleServerLayout } from "../../src/stores/redlock/layout.js";
import {
  type NodeState,
  release,
  renew,
  revoke,
  vote,
} from "../../src/stores/redlock/node-rules.js";
import {
  decodeRelease,
  decodeRenewal,
  decodeVote,
  releaseArgs,
  renewalsCall,
  voteArgs,
} from "../../src/stores/redlock/protocol.js";
import { NODE_SCRIPTS, RedlockNode, startDelayText } from "../../src/stores/redlock/quorum.js";
import { isFull } from "../fixtures/depth.js";
import { SEED } from "../fixtures/seed.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import type { RespClient } from "../servers/resp.js";
import { expectKept } from "./kept-record.js";

const channel = `holdfast@${"h".repeat(36)}`;
const names = ["x", "y", "{z}1"] as const;
const setId = startDelayText(0);
/** Longer than a round trip, shorter than the difference of any two times in commands. */
const TOLERANCE_MS = 8_000;

type Ask = (keys: readonly string[], args: readonly string[]) => Promise<unknown>;

let server: RedisServer;
let connection: RespClient;
let client: Redis;
let ask: Ask;
beforeAll(async () => {
  server = await startRedis();
  connection = await server.client();
  client = new Redis(server.port);
  const node = new RedlockNode("a", driverOf(client), NODE_SCRIPTS.single);
  ask = (keys, args) => node.ask(keys, args);
});
afterAll(async () => {
  client?.disconnect();
  await connection?.close();
  await server?.close();
});

const step = fc.record({
  type: fc.constantFrom("vote", "vote", "vote", "renew", "release", "release", "revoke", "expire"),
  name: fc.constantFrom(...names),
  owner: fc.constantFrom("o1", "o2", "o3"),
  ballot: fc.integer({ min: 1, max: 30 }),
  span: fc.constantFrom(1, 3, 64),
  ttlMs: fc.constantFrom(20_000, 40_000, 60_000),
  keepMs: fc.constantFrom(0, 0, 30_000, 30 * 86_400_000),
});
type Step = typeof step extends fc.Arbitrary<infer One> ? One : never;

const layout = new SingleServerLayout("d", "", { isCluster: true, keyPrefix: "" });

/** Runs the step on the rules and on the server; the answers of both. */
async function both(model: NodeState, base: number, one: Step): Promise<unknown[]> {
  const { name, owner, span, ttlMs, keepMs } = one;
  const ballot = base + one.ballot;
  const [seconds, micros] = (await connection.send("TIME")) as string[];
  const nowUs = Number(seconds) * 1_000_000 + Number(micros);
  const keys = layout.keysOf("lock", name);
  const request = { set: "", owner, ballot, span, ttlMs, channel };
  switch (one.type) {
    case "vote": {
      const round = { claim: request, ballot, channel, metaText: "{}", setId, maxTtlMs: 30_000 };
      const raw = await ask(keys, voteArgs({ ...round, waiter: null }));
      const actual = { ...decodeVote(raw, ttlMs) };
      if (actual.type === "held") Object.assign(actual, { record: null });
      return [vote(model, name, nowUs, request), actual];
    }
    case "renew": {
      const grant = { claim: request, token: BigInt(ballot), keys };
      const call = renewalsCall([{ grant, ttlMs }], { setId, channel });
      const [raw] = (await ask(call.keys, call.args)) as unknown[];
      return [renew(model, name, nowUs, request), decodeRenewal(raw)];
    }
    case "release": {
      const args = releaseArgs(owner, ballot, 50);
      if (keepMs > 0) args.push(`${keepMs}`, "{}");
      const raw = await ask(keys, args);
      return [release(model, name, nowUs, { owner, ballot, keepMs }), decodeRelease(raw)];
    }
    case "revoke": {
      const raw = await ask(keys, ["revoke", `${ballot}`, "why not"]);
      const request = { token: ballot, reason: "why not" };
      return [revoke(model, name, nowUs, request), decodeRelease(raw)];
    }
    default: {
      await connection.send("DEL", keys[1]);
      const state = model.names.get(name);
      if (state) state.lock = null;
      return [null, null];
    }
  }
}

function expectSame(actual: unknown, expected: unknown, about: string): void {
  const [a, b] = [actual, expected].map((one) => {
    const { remainingMs, stored, ...rest } = (one ?? {}) as Record<string, unknown>;
    return { rest, remainingMs: Number(remainingMs), stored: Number(stored) };
  });
  expect(a?.rest, about).toEqual(b?.rest);
  for (const [field, unit] of [
    ["remainingMs", 1],
    ["stored", 1_000],
  ] as const) {
    const [one, other] = [a?.[field] ?? Number.NaN, b?.[field] ?? Number.NaN];
    if (Number.isNaN(one)) expect(other, about).toBeNaN();
    else expect(Math.abs(one - other) / unit, about).toBeLessThan(TOLERANCE_MS);
  }
}

const asked: Pick<RedisServer, "ask"> = { ask: (...args) => connection.send(...args) };

async function follow(steps: readonly Step[]): Promise<void> {
  await connection.send("FLUSHALL");
  const model: NodeState = {
    run: "",
    startedMs: 0,
    marker: null,
    names: new Map(),
    singleServer: { startDelayMs: 0 },
  };
  const base = (Date.now() + 60_000) * 1_000;
  for (const one of steps) {
    const [expected, actual] = await both(model, base, one);
    expectSame(actual, expected, `${JSON.stringify(one)}: ${JSON.stringify([actual, expected])}`);
    const [, lock = "", ballot = ""] = layout.keysOf("lock", one.name);
    const state = model.names.get(one.name);
    const terms = { about: JSON.stringify(one), toleranceMs: TOLERANCE_MS };
    if (state) await expectKept(asked, [lock, ballot], state, terms);
  }
}

const numRuns = isFull ? 400 : 40;
const sequences = fc.array(step, { minLength: 20, maxLength: 60 });

test("a single server follows its rules", async () => {
  await fc.assert(
    fc.asyncProperty(sequences, (steps) => follow(steps)),
    { numRuns, seed: SEED },
  );
});
