/** Certificates, users and roles, with servers that require them. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, it } from "vitest";
import { connect } from "../../src/api/connect.js";
import { Holdfast } from "../../src/api/holdfast.js";
import { etcdStore } from "../../src/stores/etcd/index.js";
import { Stopwatch } from "../fixtures/stopwatch.js";
import { Authority } from "../servers/certificates.js";
import { type EtcdServer, startEtcd } from "../servers/etcd.js";
import { untilWaiting } from "../stores/trial.js";

const run = promisify(execFile);

/** All kinds of requests to etcd: sessions, waits, renewals, marks, lists, revokes. */
async function useAll(locks: Holdfast, other: Holdfast, prefix = ""): Promise<void> {
  const name = `${prefix}m`;
  const lease = await locks.mutex(name).acquire();
  const waiting = other.mutex(name).acquire();
  await untilWaiting(locks, name);
  await lease.renew();
  assert.equal(await lease.release(), true);
  const next = await waiting;
  const lost = once(next.signal, "abort");
  assert.equal(await locks.revoke(name, { token: next.token, reason: "test" }), true);
  await lost;
  assert.equal((await locks.once(randomUUID(), () => 1, { keepMs: 2_000 })).ran, true);
  for await (const view of locks.list({ prefix })) assert.fail(view.name);
}

describe("a server that requires certificates", () => {
  let authority: Authority;
  let server: EtcdServer;
  let client: { readonly cert: string; readonly key: string };
  beforeAll(async () => {
    authority = await Authority.make();
    client = await authority.sign("client");
    const certificates = { ca: authority.ca, ...(await authority.sign("server")) };
    server = await startEtcd({ certificates });
  });
  afterAll(async () => {
    await server.close();
    await authority[Symbol.asyncDispose]();
  });

  const url = (parameters: Record<string, string>): string =>
    `etcds://127.0.0.1:${server.tlsPort}?${new URLSearchParams(parameters)}`;

  it("accepts a client with a certificate of its authority", async () => {
    const full = url({ ca: authority.ca, ...client });
    const [locks, other] = [await connect(full), await connect(full)];
    await useAll(locks, other);
    await Promise.all([locks.close(), other.close()]);
  });

  it("refuses a client without a certificate", async () => {
    const locks = await connect(url({ ca: authority.ca }), { storeTimeoutMs: 1_000 });
    await assert.rejects(locks.mutex("m").acquire(), { code: "HF_STORE" });
    await locks.close();
  });

  it("is refused by a client without its authority", async () => {
    await using stranger = await Authority.make();
    const locks = await connect(url({ ca: stranger.ca, ...client }), { storeTimeoutMs: 1_000 });
    await assert.rejects(locks.mutex("m").acquire(), { code: "HF_STORE" });
    await locks.close();
  });

  it("names the file that cannot be read", async () => {
    for (const name of ["ca", "cert", "key"]) {
      const files = { ca: authority.ca, ...client, [name]: "/nowhere/x.pem" };
      await assert.rejects(connect(url(files)), {
        code: "HF_INVALID_OPTION",
        option: name,
        value: "/nowhere/x.pem",
        rule: "must be the path of a file to read (ENOENT)",
      });
    }
  });

  it("names the files that cannot be used", async () => {
    const refused = (parameters: Record<string, string>, message: RegExp): Promise<void> =>
      assert.rejects(connect(url(parameters)), { code: "HF_INVALID_OPTION", message });
    await refused({ ca: authority.ca, cert: client.cert }, /cert and key, or neither/);
    await refused({ ca: authority.ca, cert: client.key, key: client.cert }, /PEM files that fit/);
    const plain = `etcd://127.0.0.1:${server.tlsPort}?ca=${authority.ca}`;
    await assert.rejects(connect(plain), { message: /"ca".*TLS only/ });
  });

  it("refuses plain text, and the error gives the address, the reason and advice", async () => {
    const address = `127.0.0.1:${server.tlsPort}`;
    const locks = await connect(`etcd://${address}`, { storeTimeoutMs: 1_000 });
    await assert.rejects(locks.mutex("m").acquire(), (error: Error) => {
      assert.match(error.message, /^Lock "m": The store was silent for 1000 ms\. etcd at /);
      assert.ok(error.message.includes(`${address}: no connection (`), error.message);
      assert.match(error.message, /expect TLS\? Then the URL begins with etcds:\.$/);
      return true;
    });
    await locks.close();
  });
});

describe("a server with users", () => {
  let authority: Authority;
  let server: EtcdServer;
  let client: { readonly cert: string; readonly key: string };
  beforeAll(async () => {
    authority = await Authority.make();
    client = await authority.sign("client");
    const certificates = { ca: authority.ca, ...(await authority.sign("server")) };
    server = await startEtcd({ certificates });
    const ctl = (...args: string[]) =>
      run("etcdctl", [`--endpoints=127.0.0.1:${server.port}`, ...args], {
        env: { ...process.env, ETCDCTL_API: "3" },
      });
    await ctl("user", "add", "root:secret");
    await ctl("user", "add", "app:pass word");
    await ctl("role", "add", "locks");
    const permission = ["--prefix=true", "readwrite", "holdfast:in/app/"];
    await ctl("role", "grant-permission", "locks", ...permission);
    await ctl("user", "grant-role", "app", "locks");
    await ctl("user", "add", "raw:secret");
    await ctl("role", "add", "raw");
    for (const prefix of ["jobs/", "holdfast:"]) {
      await ctl("role", "grant-permission", "raw", "--prefix=true", "readwrite", prefix);
    }
    await ctl("user", "grant-role", "raw", "raw");
    await ctl("user", "grant-role", "root", "root");
    await ctl("auth", "enable");
  });
  afterAll(async () => {
    await server.close();
    await authority[Symbol.asyncDispose]();
  });

  const plain = (user: string, namespace: string): string =>
    `etcd://${user}@127.0.0.1:${server.port}?namespace=${namespace}`;

  it("needs a role for its own keys only", async () => {
    const url = plain("app:pass%20word", "app");
    const [locks, other] = [await connect(url), await connect(url)];
    await useAll(locks, other);
    await Promise.all([locks.close(), other.close()]);
  });

  it("needs a role for lock names and the keys of Holdfast, without a namespace", async () => {
    const url = `etcd://raw:secret@127.0.0.1:${server.port}`;
    const [locks, other] = [await connect(url), await connect(url)];
    await useAll(locks, other, "jobs/");
    const watch = new Stopwatch();
    await assert.rejects(locks.mutex("elsewhere").acquire(), /permission denied/);
    await Promise.all([locks.close(), other.close()]);
    watch.expectLessThan(4_000, "what is denied is not asked for again");
  });

  it("logs in again after etcd has forgotten its tokens", async () => {
    const locks = await connect(plain("app:pass%20word", "app"));
    await (await locks.mutex("m").acquire()).release();
    await server.restart({ keepData: true });
    await (await locks.mutex("m").acquire()).release();
    assert.equal((await locks.inspect("m")).holders.length, 0);
    await locks.close();
  });

  it("accepts a user together with a certificate", async () => {
    const parameters = new URLSearchParams({ namespace: "app", ca: authority.ca, ...client });
    const url = `etcds://app:pass%20word@127.0.0.1:${server.tlsPort}?${parameters}`;
    const [locks, other] = [await connect(url), await connect(url)];
    await useAll(locks, other);
    await Promise.all([locks.close(), other.close()]);
  });

  it("accepts a user together with a certificate, given as options", async () => {
    const tls = {
      ca: await readFile(authority.ca),
      cert: await readFile(client.cert),
      key: await readFile(client.key),
    };
    const options = {
      endpoints: [`127.0.0.1:${server.tlsPort}`],
      namespace: "app",
      user: { name: "app", password: "pass word" },
      tls,
    };
    const [locks, other] = [new Holdfast(etcdStore(options)), new Holdfast(etcdStore(options))];
    await useAll(locks, other);
    await Promise.all([locks.close(), other.close()]);
  });

  it.each([
    ["other keys", "app:pass%20word", "other", /permission denied/],
    ["a wrong password", "app:wrong", "app", /authentication failed/],
  ])("refuses %s at once", async (_, user, namespace, message) => {
    const locks = await connect(plain(user, namespace));
    const watch = new Stopwatch();
    await assert.rejects(locks.mutex("m").acquire(), { code: "HF_STORE", message });
    await locks.close();
    watch.expectLessThan(4_000, "it does not wait for the store to change");
  });

  it("refuses a client without a user", async () => {
    const locks = await connect(`etcd://127.0.0.1:${server.port}?namespace=app`);
    await assert.rejects(locks.mutex("m").acquire(), { code: "HF_STORE", message: /user name/ });
    await locks.close();
  });
});
