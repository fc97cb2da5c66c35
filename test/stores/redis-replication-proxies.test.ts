/** A server or proxy whose WAIT does not wait is refused before any lease is trusted. */
import { once } from "node:events";
import { createServer, connect as dial, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { Holdfast } from "../../src/holdfast.js";
import { onFreePorts } from "../servers/free-port.js";
import { type Replication, startReplication } from "../servers/redis.js";
import { RespClient, readMessage } from "../servers/resp.js";
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

/** Answers WAIT itself, or sends it to the server over this or a new connection. */
type Answer = (replicas: number, timeoutMs: number) => Promise<number | "here" | "anew">;

/** A proxy that passes on one command at a time, and treats WAIT as `answer` says. */
async function proxied(answer: Answer): Promise<number> {
  const clients = new Set<Socket>();
  const server = createServer((client) => {
    clients.add(client.on("error", () => {}));
    void serve(client, answer).catch(() => client.destroy());
  });
  trial.closeLater(() => {
    for (const client of clients) client.destroy();
    server.close();
  });
  return await onFreePorts(1, async ([port = 0]) => {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    return port;
  });
}

function upstreamOf(client: Socket): Socket {
  const upstream = dial(replication.master.port, "127.0.0.1").on("error", () => {});
  client.once("close", () => upstream.destroy());
  return upstream;
}

async function serve(client: Socket, answer: Answer): Promise<void> {
  let upstream = upstreamOf(client);
  let replies = messages(upstream);
  for await (const { bytes, value } of messages(client)) {
    const [command = "", ...args] = value as string[];
    const isWait = /^wait$/i.test(command);
    const made = isWait ? await answer(Number(args[0]), Number(args[1])) : "here";
    if (made === "anew") {
      upstream = upstreamOf(client);
      replies = messages(upstream);
    }
    if (typeof made === "number") client.write(`:${made}\r\n`);
    else upstream.write(bytes);
    if (/^subscribe$/i.test(command)) break;
    const reply = typeof made === "number" ? null : await replies.next();
    if (reply?.done) return void client.destroy();
    if (reply) client.write(reply.value.bytes);
  }
  // A subscriber gets messages without requests.
  for await (const { bytes } of replies) client.write(bytes);
}

async function* messages(socket: Socket): AsyncGenerator<{ bytes: Buffer; value: unknown }> {
  let received: Buffer = Buffer.alloc(0);
  for await (const chunk of socket) {
    received = Buffer.concat([received, chunk as Buffer]);
    for (let message = readMessage(received); message; message = readMessage(received)) {
      yield { bytes: received.subarray(0, message.end), value: message.value };
      received = received.subarray(message.end);
    }
  }
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
  let way: "here" | "anew" = "here";
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
  const locks = trial.ioredis(await proxied(async () => "here"), OPTIONS);
  await trial.turn(locks);
  await trial.end(locks, 1_000);
});
