/** Users and permissions, and TLS, by URL. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { create2 } from "../../src/stores/zookeeper/wire/requests.js";
import { Authority } from "../servers/certificates.js";
import { startZookeeper, type ZookeeperServer, zookeeperMissing } from "../servers/zookeeper.js";
import { ZookeeperTrial } from "./trial.js";
import { WireTrial } from "./wire-trial.js";

const REFUSED = { code: "HF_STORE", retryable: false };

describe.skipIf(zookeeperMissing() !== null)("access to ZooKeeper", () => {
  let authority: Authority;
  let server: ZookeeperServer;
  const trial = new ZookeeperTrial();
  beforeAll(async () => {
    authority = await Authority.make();
    const { cert, key } = await authority.sign("server");
    const identity = join(authority.ca, "../identity.pem");
    await writeFile(identity, Buffer.concat([await readFile(cert), await readFile(key)]));
    server = await startZookeeper({ certificates: { ca: authority.ca, identity } });
  });
  afterEach(() => trial.close());
  afterAll(async () => {
    await server?.close();
    await authority?.[Symbol.asyncDispose]();
  });

  it("shares locks between clients of one user, and refuses all others", async () => {
    const place = `127.0.0.1:${server.port}/private`;
    const first = await trial.open(`app:s%3Acret@${place}`);
    const second = await trial.open(`app:s%3Acret@${place}`);
    const lease = await first.mutex("m").acquire();
    expect(await second.mutex("m").tryAcquire()).toBeNull();
    for (const stranger of [place, `app:wrong@${place}`, `eve:s%3Acret@${place}`]) {
      const locks = await trial.open(stranger);
      const message = expect.stringMatching(/no auth.*permissions/);
      const refused = { ...REFUSED, message };
      await expect(locks.mutex("m").acquire()).rejects.toMatchObject(refused);
      await expect(locks.mutex("new").tryAcquire()).rejects.toMatchObject(refused);
      await expect(locks.inspect("m")).rejects.toMatchObject(refused);
      const revoking = locks.revoke("m", { token: lease.token, reason: "mine" });
      await expect(revoking).rejects.toMatchObject(refused);
    }
    expect(lease.state).toBe("held");
    await lease.release();
  });

  it("leaves nothing behind where the user may make znodes, but not remove them", async () => {
    const wire = new WireTrial(server.port);
    const admin = await wire.connect();
    const acl = [{ permissions: 1 + 4, scheme: "world", id: "anyone" }];
    await admin.send(create2("/poor", { acl }));
    await admin.send(create2("/poor/m", { acl }));
    const locks = await trial.open(`127.0.0.1:${server.port}/poor`);
    const lease = await locks.mutex("m").acquire();
    await lease.release();
    // The entry ends with its session, which takes no other one.
    await expect
      .poll(async () => (await locks.inspect("m")).holders.length, { timeout: 30_000 })
      .toBe(0);
    await wire.close();
  });

  it("names the znode that a user may not read when it lists all locks", async () => {
    const place = `127.0.0.1:${server.port}/mixed`;
    const wire = new WireTrial(server.port);
    const admin = await wire.connect({ credentials: [{ scheme: "digest", text: "root:x" }] });
    await admin.send(create2("/mixed"));
    const acl = [{ permissions: 31, scheme: "auth", id: "" }];
    await admin.send(create2("/mixed/secret", { acl }));
    const locks = await trial.open(place);
    const lease = await locks.mutex("m").acquire();
    const listing = (async () => {
      const names: string[] = [];
      for await (const { name } of locks.list()) names.push(name);
      return names;
    })();
    await expect(listing).rejects.toMatchObject({
      ...REFUSED,
      message: expect.stringContaining("/mixed/secret"),
    });
    await lease.release();
    await wire.close();
  });

  it("goes through TLS by URL, with the certificate of the client", async () => {
    const { cert, key } = await authority.sign("client");
    const place = `127.0.0.1:${server.tlsPort}/tls`;
    const files = `ca=${authority.ca}&cert=${cert}&key=${key}`;
    const locks = await trial.open(`${place}?${files}&direct=true`, "zookeepers");
    const lease = await locks.mutex("m").acquire();
    await lease.renew();
    await lease.release();
    const refused = async (url: string, scheme: string, message = /./): Promise<void> => {
      const stranger = await trial.open(url, scheme);
      const failing = stranger.mutex("m").acquire({ storeTimeoutMs: 5_000 });
      await expect(failing).rejects.toMatchObject({
        code: "HF_STORE",
        message: expect.stringMatching(message),
      });
    };
    await Promise.all([
      refused(`${place}?ca=${authority.ca}`, "zookeepers"),
      refused(place, "zookeepers"),
      refused(place, "zookeeper", /TLS/),
    ]);
  });
});
