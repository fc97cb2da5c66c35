/** Ensembles that are configured wrongly on purpose, and good ones. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect } from "../../src/api/connect.js";
import { Connection } from "../../src/stores/zookeeper/wire/connection.js";
import { create2 } from "../../src/stores/zookeeper/wire/requests.js";
import { networkRuntime } from "../../src/time/runtime.js";
import { startProxy } from "../faults/proxy.js";
import { startRewritingProxy } from "../faults/rewriting-proxy.js";
import { isFull } from "../fixtures/depth.js";
import { waitUntil } from "../servers/wait-until.js";
import {
  startZookeeper,
  startZookeeperEnsemble,
  type ZookeeperEnsemble,
  type ZookeeperServer,
  zookeeperMissing,
} from "../servers/zookeeper.js";
import { type Examined, examined, expectFound, expectGood } from "../stores/examined.js";

const TTL_MS = 10_000;
/** An ensemble takes long to notice that a server is gone. */

async function examine(servers: string, path = "/locks", ttlMs = TTL_MS): Promise<Examined> {
  return examined(await connect(`zookeeper://${servers}${path}`), ttlMs);
}

describe.skipIf(zookeeperMissing())("ZooKeeper", () => {
  let ensemble: ZookeeperEnsemble;
  let lone: ZookeeperServer;
  beforeAll(async () => {
    [ensemble, lone] = await Promise.all([
      startZookeeperEnsemble(3),
      startZookeeper({ lines: ["4lw.commands.whitelist=conf,srvr"] }),
    ]);
  });
  afterAll(async () => {
    await Promise.all([ensemble[Symbol.asyncDispose](), lone.close()]);
  });

  test("an ensemble of three is good, and a ttl outside of its bounds is found", async () => {
    const found = await examine(ensemble.servers);
    expectGood(found);
    expect(found.ids("skipped", "note")).toEqual([]);
    const long = await examine(ensemble.servers, "/locks", 60_000);
    expectFound(long, "zookeeper/session-bounds", "danger");
    const short = await examine(ensemble.servers, "/locks", 500);
    expectFound(short, "zookeeper/session-bounds", "danger");
  });

  test("servers that are not named are found", async () => {
    const [first] = ensemble.members;
    const found = await examine(`127.0.0.1:${first?.port}`);
    expectGood(found);
    expectFound(found, "zookeeper/ensemble", "note");
  });

  test("a lone server is found, and a path that is closed to the user", async () => {
    const address = { host: "127.0.0.1", port: lone.port };
    const servers = `${address.host}:${address.port}`;
    expectFound(await examine(servers), "zookeeper/ensemble", "warning");
    const settings = { tls: null, chroot: "", credentials: [] };
    const request = { key: null, timeoutMs: 10_000 };
    const connection = new Connection(address, settings, request, {
      openMs: 5_000,
      runtime: networkRuntime(),
    });
    await connection.send(
      create2("/closed", { acl: [{ permissions: 1, scheme: "world", id: "anyone" }] }),
    );
    await connection.endSession();
    expectFound(await examine(servers, "/closed"), "zookeeper/rights", "danger");
  });

  test("an old server is found, one that does not tell its mode, and a long way", async () => {
    const [, version = ""] = /version: ([\d.]+)/.exec(await lone.ask("srvr")) ?? [];
    const old = version.replace(/^3\.\d/, "3.4");
    await using proxy = await startRewritingProxy(lone.port, version, old);
    expectFound(await examine(`127.0.0.1:${proxy.port}`), "zookeeper/version", "danger");
    // As a server says where the word is not in its whitelist.
    const word = "Zookeeper version: ";
    const refusal = "srvr is not executed".slice(0, word.length);
    await using mute = await startRewritingProxy(lone.port, word, refusal);
    const found = await examine(`127.0.0.1:${mute.port}`, "/locks?direct=true");
    expectFound(found, "zookeeper/direct", "warning");
    await using slow = await startProxy({ targetPort: lone.port });
    slow.delay("replies", 20);
    const late = await examine(`127.0.0.1:${slow.port}`, "/locks", 50);
    expectFound(late, "zookeeper/round-trip", "warning");
  });

  test.runIf(isFull)(
    "servers that are away, and a server without a quorum, are found",
    async () => {
      const [first, second, third] = ensemble.members;
      await first?.kill();
      await ensemble.leader();
      expectFound(await examine(ensemble.servers), "zookeeper/servers", "warning");
      await second?.kill();
      await waitUntil(async () => (await third?.mode()) === null, { what: "no quorum is left" });
      expectFound(await examine(ensemble.servers), "zookeeper/quorum", "danger");
      await third?.kill();
      await expect(examine(ensemble.servers)).rejects.toMatchObject({ code: "HF_STORE" });
    },
  );
});
