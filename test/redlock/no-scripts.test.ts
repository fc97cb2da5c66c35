/**
 * One server that does not let its user run scripts: by SET with IFEQ, which the installed server
 * may not have. By default one client; the full run runs all clients.
 */
import { Cluster, Redis } from "ioredis";
import { Cluster as ValkeyCluster } from "iovalkey";
import { createCluster } from "redis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Holdfast } from "../../src/api/holdfast.js";
import { transfer } from "../../src/conformance/cases/transfer.js";
import { type Driver, driverOf } from "../../src/stores/redis-client/driver.js";
import { ByCommands } from "../../src/stores/redlock/by-commands.js";
import { decodeSight, releaseArgs, voteArgs } from "../../src/stores/redlock/codec.js";
import { type RedlockStoreOptions, redlockStore } from "../../src/stores/redlock/index.js";
import { LoneLayout } from "../../src/stores/redlock/layout.js";
import { BY_COMMANDS } from "../../src/stores/redlock/name-record.js";
import { startDelayText } from "../../src/stores/redlock/quorum.js";
import type { ProxiedRequest } from "../faults/framing.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { type RedisCluster, startRedisCluster } from "../servers/redis-cluster.js";
import { examined } from "../stores/examined.js";
import { runConformance } from "../stores/run-conformance.js";
import { forEachClient } from "./conformance.js";
import type { Way } from "./harness.js";
import { expectLongMark } from "./kept-record.js";

type Client = NonNullable<RedlockStoreOptions["client"]>;

const server = await startRedis();
afterAll(() => server.close());
const hasNative = await server.ask("SET", "none", "?", "IFEQ", "?").then(
  () => true,
  () => false,
);
// The rights that docs/stores/redlock.md names.
const rights =
  "+get +mget +set +pttl +pexpire +time +type +info +publish +subscribe +unsubscribe +scan +ping " +
  "+hello +select +client";
const addUser = (to: RedisServer, ...more: readonly string[]): Promise<unknown> =>
  to.ask("ACL", "SETUSER", "mute", "on", ">p", "~*", "&*", "-@all", ...rights.split(" "), ...more);
await addUser(server);

const impossible: Record<string, string> = {
  ...Object.fromEntries(transfer.map(({ title }) => [title, "a resumption needs a script"])),
  "once: after a failure, a waiting caller runs the work":
    "the case looks for the waiter in the queue; the test below does the same without",
  "a waiter whose wake-up message is lost acquires the lock by asking again":
    "a release publishes nothing, so every waiter asks again",
  "a late copy of an acquire, after its lease was released, holds nothing":
    "SET with NX compares no ballots, so its late copy blocks the lock for one ttl",
};

const isSet = ({ command, args }: ProxiedRequest, ...words: readonly string[]): boolean =>
  command === "SET" && words.every((word) => args.includes(word));
/** The value of the key is the one that it is compared with, so it stays. */
const keepsValue = ({ args }: ProxiedRequest): boolean =>
  args[1] === args[args.indexOf("IFEQ") + 1];

const requestOf: Way["requestOf"] = {
  acquire: (request) => isSet(request, "NX", "GET"),
  renew: (request) => isSet(request, "IFEQ", "PX") && keepsValue(request),
  release: (request) => isSet(request, "IFEQ", "PXAT") && keepsValue(request),
};

describe.skipIf(!hasNative)("between two commands", () => {
  const layout = new LoneLayout("between", "", { isCluster: false, keyPrefix: "" });
  const channel = `holdfast@${"h".repeat(36)}`;
  let client: Redis;
  let driver: Driver;
  beforeAll(() => {
    client = new Redis(server.port);
    driver = driverOf(client);
  });
  afterAll(() => client?.disconnect());

  /** Does the work once, when such a command was answered, and before its sender goes on. */
  function interrupted(word: string, work: () => Promise<unknown>): ByCommands {
    let isDue = true;
    const own: Driver = Object.create(driver, {
      send: {
        value: async (...sent: Parameters<Driver["send"]>) => {
          const answer = await driver.send(...sent);
          if (isDue && sent[2].includes(word)) {
            isDue = false;
            await work();
          }
          return answer;
        },
      },
    });
    return new ByCommands(own);
  }

  function vote(by: ByCommands, name: string, owner: string, ballot: number): Promise<unknown> {
    const claim = { owner: owner + BY_COMMANDS, ttlMs: 30_000, span: 1 };
    const terms = { channel, metaText: "{}", setId: startDelayText(0), maxTtlMs: 30_000 };
    const args = voteArgs({ claim, ballot, waiter: null, ...terms });
    return by.run(layout.keysOf("lock", name), args);
  }

  const sight = async (name: string) => {
    const keys = layout.keysOf("lock", name);
    return decodeSight(await new ByCommands(driver).run(keys, ["wait"]), 30_000);
  };
  const ballotOf = (ms: number): number => (Date.now() + ms) * 1_000;

  it("an owner without its ballot is no holder yet, and its token cannot be revoked", async () => {
    const keys = layout.keysOf("lock", "taking");
    const [seen, ballot]: [unknown[], number] = [[], ballotOf(0)];
    const first = interrupted("NX", async () => {
      seen.push(await sight("taking"), await first.run(keys, ["revoke", `${ballot}`, "why"]));
    });
    expect(await vote(first, "taking", "a", ballot)).toBe(1);
    expect(seen).toMatchObject([{ type: "reserved" }, 0]);
    expect(await sight("taking")).toMatchObject({
      type: "held",
      record: { token: BigInt(ballot) },
    });
  });

  it.each([
    ["a release", (owner: string, ballot: number) => releaseArgs(owner, ballot, 0)],
    ["a revocation", (_: string, ballot: number) => ["revoke", `${ballot}`, "why"]],
  ])("%s leaves the record of the next holder as it is", async (name, argsOf) => {
    const [ballot, next] = [ballotOf(0), ballotOf(5)];
    const keys = layout.keysOf("lock", name);
    expect(await vote(new ByCommands(driver), name, "a", ballot)).toBe(1);
    // The next holder comes as soon as the key is deleted, by an expiry in the past.
    const ending = interrupted("1", () => vote(new ByCommands(driver), name, "b", next));
    expect(await ending.run(keys, argsOf(`a${BY_COMMANDS}`, ballot))).toBe(1);
    expect(await sight(name)).toMatchObject({ type: "held", record: { token: BigInt(next) } });
  });
});

/** Each client takes the lock so often; no two have it at the same time, and tokens rise. */
async function excludes(clients: readonly Client[], turns: number, name = "mixed"): Promise<void> {
  const all = clients.map((client) => new Holdfast(redlockStore({ client, pollMs: 10 })));
  let [inside, last] = [0, 0n];
  const take = async (locks: Holdfast): Promise<void> => {
    for (let turn = 0; turn < turns; turn += 1) {
      await locks.mutex(name).run(async ({ token }) => {
        inside += 1;
        expect(inside).toBe(1);
        expect(token).toBeGreaterThan(last);
        last = token;
        await new Promise((resume) => setImmediate(resume));
        inside -= 1;
      });
    }
  };
  await Promise.all(all.map(take));
  await Promise.all(all.map((locks) => locks.close()));
}

describe.skipIf(!hasNative)("a Cluster without scripts", () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startRedisCluster();
    const more = ["+cluster", "+readonly", "+asking"];
    await Promise.all(cluster.masters.map((master) => addUser(master.server, ...more)));
  });
  afterAll(() => cluster?.[Symbol.asyncDispose]());

  it("is shared by all kinds of clients, with and without scripts", async () => {
    const ports = cluster.masters.map((master) => ({ port: master.server.port }));
    const nodes = ports.map(({ port }) => ({ host: "127.0.0.1", port }));
    const user = { username: "mute", password: "p" };
    const byRedis = createCluster({
      rootNodes: nodes.map(({ port }) => ({ url: `redis://127.0.0.1:${port}` })),
      defaults: user,
    });
    byRedis.on("error", () => {});
    await byRedis.connect();
    const others = [
      new Cluster(nodes, { redisOptions: user }),
      new ValkeyCluster(nodes, { redisOptions: user }),
      new Cluster(nodes),
    ];
    const clients = [byRedis, ...others] as readonly Client[];
    // Names of several slots.
    await Promise.all(["a", "b", "c", "d"].map((name) => excludes(clients, 5, name)));
    const [holder, revoker] = clients.map((client) => new Holdfast(redlockStore({ client })));
    const lease = await holder?.mutex("e").acquire();
    expect(await revoker?.revoke("e", { token: lease?.token ?? 0n, reason: "why" })).toBe(true);
    await expect.poll(() => lease?.signal.aborted).toBe(true);
    expect(lease?.signal.reason).toMatchObject({ reason: "revoked" });
    await Promise.all([holder, revoker].map((locks) => locks?.close()));
    byRedis.destroy();
    for (const client of others) client.disconnect();
  });
});

// The installed server is older: the matrix of servers has newer ones.
describe.skipIf(!hasNative)("without scripts", () => {
  const way = { user: "mute:p@", requestOf, start: async () => server };
  forEachClient(
    1,
    "ioredis 6",
    (harness, client, name) => {
      it("the doctor says which way is used", async () => {
        const found = await examined(new Holdfast(redlockStore({ client: client() })));
        expect(found.of("redlock/scripts")).toMatchObject({ severity: "note" });
      });

      it("refuses what needs a script, in plain words", async () => {
        await using waiting = new Holdfast(redlockStore({ client: client(), bootstrap: "wait" }));
        await expect(waiting.mutex("r").acquire({ ttlMs: 20_000 })).rejects.toThrow(/scripts/);
        await using locks = new Holdfast(redlockStore({ client: client() }));
        const lease = await locks.mutex("r").acquire({ transferable: true });
        await expect(locks.resume(lease.detach())).rejects.toThrow(/scripts/);
      });

      it("a waiting once runs the work after a failure, and then others see its mark", async () => {
        await using locks = new Holdfast(redlockStore({ client: client(), pollMs: 20 }));
        await using others = new Holdfast(redlockStore({ client: client(), pollMs: 20 }));
        const keepMs = 60_000;
        // The mark of one client must not meet the case of the next.
        const job = `job by ${name}`;
        const takes = async () => {
          const { cmdstat_set = "" } = await server.info("commandstats");
          return Number(/calls=(\d+)/.exec(cmdstat_set)?.[1] ?? 0);
        };
        const failures: ((error: Error) => void)[] = [];
        const work = () => new Promise<never>((_, reject) => failures.push(reject));
        const failing = locks.once(job, work, { keepMs });
        // Not a look at the holder: an attempt whose answer is late is shown, and then withdrawn.
        await expect.poll(() => failures).toHaveLength(1);
        const before = await takes();
        const waiting = others.once(job, () => "took over", { keepMs, waitMs: 30_000 });
        await expect.poll(takes).toBeGreaterThan(before);
        for (const fail of failures) fail(new Error("the work failed"));
        await expect(failing).rejects.toThrow("the work failed");
        expect(await waiting).toMatchObject({ ran: true, value: "took over" });
        expect(await locks.once(job, work, { keepMs })).toMatchObject({
          ran: false,
          state: "done",
        });
      });

      it("a mark of thirty days has a record that outlives it", async () => {
        await using locks = new Holdfast(redlockStore({ client: client() }));
        const job = `long by ${name}`;
        await locks.once(job, () => 1, { keepMs: 30 * 86_400_000 });
        await expectLongMark(server, job);
      });

      it("shares locks with clients that run scripts, and tokens rise", async () => {
        const plain = new Redis(server.port);
        await excludes([client(), client(), plain, plain], 25);
        plain.disconnect();
      });

      runConformance({ ...harness, exempt: { ...harness.exempt, ...impossible } });
    },
    way,
  );
});
