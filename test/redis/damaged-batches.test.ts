/** Batches and handoffs on a server whose data is damaged, or that fails or hides its run. */
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { StoreError } from "../../src/errors/index.js";
import type { Acquire, Command } from "../../src/rules/ledger-command.js";
import { TELL_RUN } from "../../src/stores/redis/redis-script.js";
import { ScriptAnswer } from "../../src/stores/redis/script-answer.js";
import { storeError } from "../../src/stores/redis-client/errors.js";
import { changedScripts, LedgerScript, requestOf } from "../fixtures/ledger-script.js";
import { type RedisServer, startRedis } from "../servers/redis.js";

const REGISTER = "{hf:damaged}";

let server: RedisServer;
let client: Redis;
beforeAll(async () => {
  server = await startRedis();
  client = new Redis(server.port);
});
afterAll(async () => {
  client?.disconnect();
  await server?.close();
});
afterEach(() => client.flushall());

const mutex = (key: string, owner: string): Acquire => requestOf(key, owner, { mode: "exclusive" });

const release: Command = {
  type: "release",
  key: "l:m",
  owner: "first",
  tombstoneUs: 0,
  keep: null,
};

test.each(["2zzzzzzzzzzzzzzz", "1e15            ", "8999999999999999x"])(
  "a handoff ignores the damaged last token %j",
  async (last) => {
    const script = new LedgerScript(client, REGISTER);
    const listener = client.duplicate();
    await listener.subscribe(`${script.channels}second`);
    const first = await script.do(mutex("l:m", "first"));
    expect(await script.do(mutex("l:m", "second"))).toMatchObject({ type: "queued" });
    await client.hset(REGISTER, "", last);
    expect(await script.do(release)).toMatchObject({ type: "released", held: true });
    const next = await script.do(mutex("l:m", "second"));
    expect(next).toMatchObject({ type: "granted" });
    expect(tokenOf(next)).toBeGreaterThan(tokenOf(first));
    listener.disconnect();
  },
);

test("a release passes over a damaged waiter", async () => {
  const script = new LedgerScript(client, REGISTER);
  const second = client.duplicate();
  await second.subscribe(`${script.channels}second`);
  await script.do(mutex("l:m", "first"));
  await script.do(mutex("l:m", "second"));
  const queue = `${REGISTER}q:l:m`;
  const [member = ""] = await client.zrange(queue, 0, "0");
  // Fewer digits than a request has: the waiter's own terms have no place in it.
  await client.zrem(queue, member);
  await client.zadd(queue, "1", `${member.slice(0, 20)}x${member.slice(69)}`);
  expect(await script.do(release)).toMatchObject({ type: "released", held: true });
  expect(await script.do(mutex("l:m", "third"))).toMatchObject({ type: "granted" });
  second.disconnect();
});

test("a grant behind one that failed has the token that the register keeps", async () => {
  // The first command is decided, and cannot be written.
  const scripts = changedScripts((text) =>
    text.replace(
      "local function save(state, reply)",
      "$&\n  if state.name == 'l:bad' then error('ERR cut') end",
    ),
  );
  const script = new LedgerScript(client, REGISTER, scripts);
  const commands = ["l:before", "l:bad", "l:after"].map((key) => {
    return requestOf(key, "o", { mode: "exclusive", weight: 2, limit: 3, enqueue: false });
  });
  const raw = (await script.ask(commands)) as unknown[];
  expect(raw[2]).toContain("ERR cut");
  const answer = new ScriptAnswer(commands, raw, false);
  const granted = [0, 2].map((at) => tokenOf(answer.reply(at)));
  const kept = await client.hmget(REGISTER, "l:before", "l:after");
  expect(granted).toEqual(kept.map((entry) => Number(entry?.slice(33, 49))));
});

test("a server without a run id is refused before it grants", async () => {
  const scripts = changedScripts((text) => text.replace("call('INFO', 'server')", "'# Server'"));
  const script = new LedgerScript(client, REGISTER, scripts);
  const commands = [mutex("l:a", "o"), mutex("l:b", "o")];
  const error = await script
    .execute(commands, TELL_RUN)
    .catch((cause) => storeError(cause, "redis"));
  expect(error).toBeInstanceOf(StoreError);
  expect(error).toMatchObject({ outcome: "not_applied", retryable: false });
  expect(await client.keys("*")).toEqual([]);
});

function tokenOf(reply: object): number {
  expect(reply).toMatchObject({ type: "granted" });
  return (reply as { token: number }).token;
}
