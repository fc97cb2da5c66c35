/**
 * The conformance kit on one server that does not let its user run scripts: by SET with IFEQ, which
 * the installed server may not have.
 */
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { transfer } from "../../src/conformance/cases/transfer.js";
import { Holdfast } from "../../src/holdfast.js";
import { type RedlockStoreOptions, redlockStore } from "../../src/stores/redlock/index.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { examined } from "./examined.js";
import { redlockHarness } from "./redlock-harness.js";
import { runConformance } from "./run-conformance.js";

type Client = NonNullable<RedlockStoreOptions["client"]>;

const server: RedisServer = await startRedis();
afterAll(() => server.close());
const hasNative = await server.ask("SET", "none", "?", "IFEQ", "?").then(
  () => true,
  () => false,
);
await server.ask("ACL", "SETUSER", "mute", "on", ">p", "~*", "&*", "+@all", "-@scripting");

const openers: Record<string, () => Promise<{ client: Client; close(): unknown }>> = {
  "ioredis 6": async () => {
    const client = new Redis({ port: server.port, username: "mute", password: "p" });
    client.on("error", () => {});
    return { client, close: () => client.disconnect() };
  },
  "node-redis 6": async () => {
    const url = `redis://mute:p@127.0.0.1:${server.port}`;
    const client = createClient({ url });
    client.on("error", () => {});
    await client.connect();
    return { client, close: () => client.destroy() };
  },
};

const withoutResume = Object.fromEntries(
  transfer.map(({ title }) => [title, "a resumption needs a script"]),
);
const names = Object.keys(openers);
for (const name of process.env.HOLDFAST_FULL ? names : names.slice(0, 1)) {
  // The installed server is older: the matrix of servers has newer ones.
  describe.skipIf(!hasNative)(name, () => {
    let opened: { client: Client; close(): unknown };
    beforeAll(async () => {
      opened = (await openers[name]?.()) as typeof opened;
    });
    afterAll(() => opened?.close());

    it("the doctor says which way is used", async () => {
      const found = await examined(new Holdfast(redlockStore({ client: opened.client })));
      expect(found.of("redlock/scripts")).toMatchObject({ severity: "note" });
    });

    it("refuses what needs a script, in plain words", async () => {
      const { client } = opened;
      await using waiting = new Holdfast(redlockStore({ client, bootstrap: "wait" }));
      await expect(waiting.mutex("r").acquire({ ttlMs: 20_000 })).rejects.toThrow(/scripts/);
      await using locks = new Holdfast(redlockStore({ client }));
      const lease = await locks.mutex("r").acquire({ transferable: true });
      await expect(locks.resume(lease.detach())).rejects.toThrow(/scripts/);
    });

    const harness = redlockHarness(
      1,
      () => [server],
      () => [opened.client],
    );
    runConformance({
      ...harness,
      exempt: { ...harness.exempt, ...withoutResume },
      child: {
        module: new URL("./redlock-child.mjs", import.meta.url),
        argument: (namespace) => `redlock://mute:p@127.0.0.1:${server.port}?namespace=${namespace}`,
      },
    });
  });
}
