import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { askStatus, Ensemble } from "../../src/stores/zookeeper/client.js";
import { SessionClient } from "../../src/stores/zookeeper/watches.js";
import { create2, exists, sync } from "../../src/stores/zookeeper/wire/requests.js";
import type { WatchEvent } from "../../src/stores/zookeeper/wire/watch-table.js";
import { networkRuntime } from "../../src/time/runtime.js";
import { Authority } from "../servers/certificates.js";
import {
  startZookeeper,
  startZookeeperEnsemble,
  type ZookeeperEnsemble,
  type ZookeeperServer,
  zookeeperMissing,
} from "../servers/zookeeper.js";
import { WireTrial } from "./wire-trial.js";

const missing = zookeeperMissing();
const runtime = networkRuntime();
const SETTINGS = { tls: null, chroot: "", credentials: [] };
const LIMITS = { limitMs: 5_000, runtime };

describe.skipIf(missing)(`servers of ZooKeeper${missing ? ` (${missing})` : ""}`, () => {
  describe("an ensemble", () => {
    let ensemble: ZookeeperEnsemble;

    beforeAll(async () => {
      ensemble = await startZookeeperEnsemble(3, {
        tickMs: 200,
        maxSessionMs: 60_000,
        properties: ["readonlymode.enabled=true"],
      });
    });

    afterAll(() => ensemble?.[Symbol.asyncDispose]());

    it("tells which server leads", async () => {
      const leader = await ensemble.leader();
      for (const member of ensemble.members) {
        const { mode, version } = await askStatus(member.address, { tls: null }, LIMITS);
        expect(mode).toBe(member === leader ? "leader" : "follower");
        expect(version).toMatch(/^\d+\.\d+\.\d+$/);
      }
    });

    it("moves a session and its watches to another server when one is gone", async () => {
      const addresses = ensemble.members.map(({ address }) => address);
      const client = new SessionClient(new Ensemble(addresses, SETTINGS, runtime), 10_000);
      const connection = await client.connected(10_000);
      const { key } = await connection.opened;
      await connection.send(create2("/e", { mode: "ephemeral" }));
      const told = new Promise<WatchEvent>((resolve) => {
        void connection.send(exists("/made", resolve));
      });
      await connection.send(sync("/"));
      const { peer } = connection;
      expect(peer).toEqual(connection.address);
      const server = ensemble.members.find((member) => member.port === peer?.port);
      await server?.kill();
      await connection.ended;
      const again = await client.connected(20_000);
      expect(again.address).not.toEqual(connection.address);
      expect(again.session?.key.id).toBe(key.id);
      expect((await again.send(exists("/e"))).stat?.ephemeralOwner).toBe(key.id);
      await again.send(create2("/made"));
      expect(await told).toEqual({ type: "created", path: "/made" });
      await client.close(1_000);
      await server?.start();
    });

    it("ends a connection whose session has moved, and does not do its requests", async () => {
      const [first, second] = ensemble.members as [ZookeeperServer, ZookeeperServer];
      // A server that was restarted is read-only before it follows.
      const modes = () => Promise.all(ensemble.members.map((one) => one.mode()));
      await expect
        .poll(async () => (await modes()).sort(), { interval: 50, timeout: 60_000 })
        .toEqual(["follower", "follower", "leader"]);
      const old = await new WireTrial(first.port).connect({ timeoutMs: 10_000 });
      const { key } = await old.opened;
      const trial = new WireTrial(second.port);
      const moved = await trial.connect({ key, timeoutMs: 10_000 });
      const failed = old.send(create2("/late"));
      await expect(failed).rejects.toMatchObject({ code: "connection_lost", outcome: "unknown" });
      await moved.send(sync("/"));
      expect((await moved.send(exists("/late"))).stat).toBeNull();
      old.close();
      await trial.close();
    });

    it("without a quorum refuses sessions, and tells that it is read-only", async () => {
      const [left, ...others] = ensemble.members as [ZookeeperServer, ...ZookeeperServer[]];
      for (const other of others) await other.kill();
      await expect
        .poll(async () => (await askStatus(left.address, { tls: null }, LIMITS)).mode, {
          interval: 50,
        })
        .toBe("read_only");
      const connection = new WireTrial(left.port).open();
      const request = connection.send(create2("/a"));
      await expect(request).rejects.toMatchObject({ code: "connection_lost" });
      await expect(connection.opened).rejects.toMatchObject({ code: "connection_lost" });
      const list = new Ensemble([left.address], SETTINGS, runtime);
      await expect(list.connect({ key: null, timeoutMs: 5_000 }, 300)).rejects.toMatchObject({
        code: "not_connected",
        outcome: "not_sent",
      });
    });
  });

  it("with TLS serve clients with a certificate", async () => {
    await using authority = await Authority.make();
    const { cert, key } = await authority.sign("server");
    const identity = join(authority.ca, "../identity.pem");
    await writeFile(identity, Buffer.concat([await readFile(cert), await readFile(key)]));
    await using server = await startZookeeper({
      certificates: { ca: authority.ca, identity },
    });
    const mine = await authority.sign("client");
    const [ca, ...own] = await Promise.all(
      [authority.ca, mine.cert, mine.key].map((f) => readFile(f)),
    );
    const tls = { ca, cert: own[0], key: own[1] } as { ca: Buffer; cert: Buffer; key: Buffer };
    const trial = new WireTrial(server.tlsPort);
    const connection = await trial.connect({ tls });
    expect(await connection.send(create2("/a"))).toMatchObject({ path: "/a" });
    const address = { host: "127.0.0.1", port: server.tlsPort };
    expect(await askStatus(address, { tls }, LIMITS)).toMatchObject({ mode: "standalone" });

    const stranger = trial.open({ tls: { ca: tls.ca } });
    await expect(stranger.opened).rejects.toMatchObject({ code: "connection_lost" });
    const plain = trial.open({ openMs: 2_000 });
    await expect(plain.opened).rejects.toMatchObject({ code: "connection_lost" });
    const untrusted = trial.open({ tls: {} });
    await expect(untrusted.opened).rejects.toMatchObject({
      code: "connection_lost",
      message: expect.stringMatching(/certificate/),
    });
    await expect(untrusted.send(create2("/b"))).rejects.toMatchObject({ outcome: "not_sent" });
    const other = new WireTrial(server.port).open({ tls, openMs: 2_000 });
    await expect(other.opened).rejects.toMatchObject({ code: "connection_lost" });
    await trial.close();
  });

  it("that require SASL are told apart from others", async () => {
    await using server = await startZookeeper({
      properties: [
        "zookeeper.sessionRequireClientSASLAuth=true",
        "zookeeper.authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
      ],
    });
    const connection = new WireTrial(server.port).open();
    await expect(connection.send(create2("/a"))).rejects.toMatchObject({
      code: "sasl_required",
      outcome: "refused",
    });
    expect(await connection.ended).toMatchObject({ code: "sasl_required" });
  });

  it("that do not answer srvr are told", async () => {
    const refusal = "srvr is not executed because it is not in the whitelist.\n";
    const refusing = createServer((socket) => socket.once("data", () => socket.end(refusal)));
    refusing.listen(0, "127.0.0.1");
    await once(refusing, "listening");
    const address = { host: "127.0.0.1", port: (refusing.address() as { port: number }).port };
    expect(await askStatus(address, { tls: null }, LIMITS)).toEqual({ version: null, mode: null });
    refusing.close();

    await using server = await startZookeeper();
    await server.pause();
    const asked = askStatus(server.address, { tls: null }, { limitMs: 200, runtime });
    await expect(asked).rejects.toMatchObject({ code: "silent" });
    server.resume();
    await server.kill();
    await expect(askStatus(server.address, { tls: null }, LIMITS)).rejects.toMatchObject({
      code: "connection_lost",
    });
  });
});
