/** A server or proxy whose WAIT does not wait is refused before any lease is trusted. */
import { expect, test } from "vitest";
import { startCommandProxy } from "../faults/command-proxy.js";
import { type RedisServer, startReplication } from "../servers/redis.js";
import { RespClient } from "../servers/resp.js";
import { libraries } from "./clients.js";
import { Trial } from "./trial.js";

const OPTIONS = { replicas: 1, replicaTimeoutMs: 500 };
const PATIENCE_MS = 30_000;

/** Treats WAIT; other commands are passed on. */
type Answer = (replicas: number, timeoutMs: number) => Promise<number | "pass" | "anew">;

async function proxied(master: RedisServer, trial: Trial, answer: Answer): Promise<number> {
  const proxy = await startCommandProxy(master.port, async (command, args) => {
    if (command !== "wait") return "pass";
    const made = await answer(Number(args[0]), Number(args[1]));
    return typeof made === "number" ? { reply: `:${made}\r\n` } : made;
  });
  trial.closeLater(() => proxy[Symbol.asyncDispose]());
  return proxy.port;
}

async function elsewhere(master: RedisServer, trial: Trial): Promise<Answer> {
  const other = await RespClient.connect(master.port);
  trial.closeLater(() => other.close());
  return async (replicas, timeoutMs) => Number(await other.send("WAIT", replicas, timeoutMs));
}

const dishonestProxies: Record<string, (master: RedisServer, trial: Trial) => Promise<Answer>> = {
  "answers WAIT with 1": async () => async () => 1,
  "answers WAIT with the requested number": async () => async (replicas) => replicas,
  "sends WAIT over another connection": elsewhere,
};

test.concurrent.each(Object.entries(dishonestProxies))(
  "a proxy that %s: refused",
  async (_, liar) => {
    // No other client writes there: that would hide how WAIT is answered.
    await using replication = await startReplication({ replicas: 1 });
    const { master } = replication;
    await using trial = new Trial(master);
    const port = await proxied(master, trial, await liar(master, trial));
    for (const library of libraries) {
      const locks = await trial.open(library, port, OPTIONS);
      // The proof takes several answers of the replica.
      const asked = trial.acquire(locks, { storeTimeoutMs: PATIENCE_MS });
      const refused = await asked.catch((error: unknown) => error);
      expect(refused).toMatchObject({ code: "HF_STORE", retryable: false, outcome: "not_applied" });
      expect(String(refused)).toContain("WAIT does not wait for what its own connection wrote");
    }
  },
);

test.concurrent("a proxy that later changes the connection: not trusted", async () => {
  await using replication = await startReplication({ replicas: 1 });
  const { master } = replication;
  await using trial = new Trial(master);
  let way: "pass" | "anew" = "pass";
  const locks = trial.ioredis(await proxied(master, trial, async () => way), OPTIONS);
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

test.concurrent("a proxy that passes on every command: accepted", async () => {
  await using replication = await startReplication({ replicas: 1 });
  const { master } = replication;
  await using trial = new Trial(master);
  const locks = trial.ioredis(await proxied(master, trial, async () => "pass"), OPTIONS);
  await trial.turn(locks);
  await trial.end(locks, 1_000);
});
