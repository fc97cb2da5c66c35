/** A server or proxy whose WAIT does not wait is refused before any lease is trusted. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { Holdfast } from "../../src/holdfast.js";
import { startCommandProxy } from "../faults/command-proxy.js";
import { type Replication, startReplication } from "../servers/redis.js";
import { RespClient } from "../servers/resp.js";
import { Trial } from "./redis-trial.js";

const OPTIONS = { replicas: 1, replicaTimeoutMs: 500 };

let replication: Replication;
let trial: Trial;
beforeAll(async () => {
  replication = await startReplication({ replicas: 1 });
});
afterAll(() => replication?.[Symbol.asyncDispose]());
beforeEach(() => {
  trial = new Trial(replication.master);
});
afterEach(() => trial.close());

/** Treats WAIT; other commands are passed on. */
type Answer = (replicas: number, timeoutMs: number) => Promise<number | "pass" | "anew">;

async function proxied(answer: Answer): Promise<number> {
  const proxy = await startCommandProxy(replication.master.port, async (command, args) => {
    if (command !== "wait") return "pass";
    const made = await answer(Number(args[0]), Number(args[1]));
    return typeof made === "number" ? { reply: `:${made}\r\n` } : made;
  });
  trial.closeLater(() => proxy[Symbol.asyncDispose]());
  return proxy.port;
}

async function elsewhere(): Promise<Answer> {
  const other = await RespClient.connect(replication.master.port);
  trial.closeLater(() => other.close());
  return async (replicas, timeoutMs) => Number(await other.send("WAIT", replicas, timeoutMs));
}

const dishonestProxies: Record<string, () => Promise<Answer>> = {
  "answers WAIT with 1": async () => async () => 1,
  "answers WAIT with the requested number": async () => async (replicas) => replicas,
  "sends WAIT over another connection": elsewhere,
};

test.each(Object.entries(dishonestProxies))("a proxy that %s: refused", async (_, liar) => {
  const port = await proxied(await liar());
  const opened: Holdfast[] = [trial.ioredis(port, OPTIONS), await trial.nodeRedis(port, OPTIONS)];
  for (const locks of opened) {
    const refused = await trial.acquire(locks).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: "HF_STORE", retryable: false, outcome: "not_applied" });
    expect(String(refused)).toContain("WAIT does not wait for what its own connection wrote");
  }
});

test("a proxy that later changes the connection: not trusted", async () => {
  let way: "pass" | "anew" = "pass";
  const locks = trial.ioredis(await proxied(async () => way), OPTIONS);
  await trial.turn(locks);
  way = "anew";
  await replication.replicas[0]?.pause();
  try {
    // The new connection has written nothing: newer servers answer its WAIT at once.
    const refused = trial.acquire(locks, { storeTimeoutMs: 1_000 });
    await expect(refused).rejects.toThrow(/Redis (changed its role|cannot tell)/);
  } finally {
    replication.replicas[0]?.resume();
  }
});

test("a proxy that passes on every command: accepted", async () => {
  const locks = trial.ioredis(await proxied(async () => "pass"), OPTIONS);
  await trial.turn(locks);
  await trial.end(locks, 1_000);
});
