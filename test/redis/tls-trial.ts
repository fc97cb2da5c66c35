/** Redis and Redlock by URL over TLS, with the client library that the test file selects. */
import assert from "node:assert/strict";
import { afterAll, beforeAll, expect, it } from "vitest";
import { connect } from "../../src/api/connect.js";
import { InvalidOptionError, QuorumError, StoreError } from "../../src/errors/index.js";
import { Stopwatch } from "../fixtures/stopwatch.js";
import { Authority } from "../servers/certificates.js";
import { onFreePorts } from "../servers/free-port.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { startRedisCluster } from "../servers/redis-cluster.js";
import { startOneSentinel } from "../servers/redis-sentinel.js";
import { closeAll } from "../servers/server-process.js";

interface Certificate {
  readonly cert: string;
  readonly key: string;
}

interface TlsServer {
  readonly server: RedisServer;
  readonly port: number;
}

const FAST_MS = 3_000;

function startTls(ca: string, own: Certificate, clients: "yes" | "no"): Promise<TlsServer> {
  return onFreePorts(1, async ([port = 0]) => {
    const args = ["--tls-port", `${port}`, "--tls-auth-clients", clients, ...filesOf(ca, own)];
    return { server: await startRedis({ args }), port };
  });
}

function filesOf(ca: string, { cert, key }: Certificate): string[] {
  return ["--tls-ca-cert-file", ca, "--tls-cert-file", cert, "--tls-key-file", key];
}

/** The same settings as lines of a file. */
function configOf(args: readonly string[]): string[] {
  return args
    .join(" ")
    .split(" --")
    .map((line) => line.replace(/^--/, ""));
}

async function failureOf(url: string): Promise<unknown> {
  return await connect(url).then(
    (locks) => locks.close(),
    (reason: unknown) => reason,
  );
}

/** The error of a connection that fails at once. */
async function promptFailureOf(url: string): Promise<unknown> {
  const stopwatch = new Stopwatch();
  const error = await failureOf(url);
  stopwatch.expectLessThan(FAST_MS);
  return error;
}

export function tryTls(): void {
  let authority: Authority;
  let client: Certificate;
  const servers: RedisServer[] = [];
  let good: TlsServer;
  let strict: TlsServer;
  let expired: TlsServer;
  let misnamed: TlsServer;

  beforeAll(async () => {
    authority = await Authority.make();
    client = await authority.sign("client");
    const own = await authority.sign("server");
    const start = async (certificate: Certificate, clients: "yes" | "no"): Promise<TlsServer> => {
      const started = await startTls(authority.ca, certificate, clients);
      servers.push(started.server);
      return started;
    };
    good = await start(own, "no");
    strict = await start(own, "yes");
    expired = await start(await authority.sign("expired", { days: -1 }), "no");
    misnamed = await start(await authority.sign("other", { names: "DNS:other.example" }), "no");
  });

  afterAll(async () => {
    await closeAll(servers);
    await authority[Symbol.asyncDispose]();
  });

  const query = (parameters: Record<string, string>): string =>
    new URLSearchParams(parameters).toString();

  const urlOf = ({ port }: TlsServer, parameters: Record<string, string> = {}): string =>
    `rediss://127.0.0.1:${port}?${query(parameters)}`;

  it("trusts the authority of ca", async () => {
    await using locks = await connect(urlOf(good, { ca: authority.ca }));
    await using other = await connect(urlOf(good, { ca: authority.ca }));
    const lease = await locks.mutex("m").acquire();
    const next = other.mutex("m").acquire();
    assert.equal(await lease.release(), true);
    assert.equal(await (await next).release(), true);
  });

  it("shows the certificate of cert and key", async () => {
    await using locks = await connect(urlOf(strict, { ca: authority.ca, ...client }));
    assert.equal(await (await locks.mutex("m").acquire()).release(), true);
  });

  it.each([
    ["no known authority", () => urlOf(good), /no known authority .* by ca= \(.*certificate/],
    ["another host name", () => urlOf(misnamed, { ca: authority.ca }), /another host name/],
    ["expired", () => urlOf(expired, { ca: authority.ca }), /certificate has expired/],
    ["no certificate of ours", () => urlOf(strict, { ca: authority.ca }), /cert= and key=/],
  ])("says at once why there is no secure connection: %s", async (_what, url, why) => {
    const error = await promptFailureOf(url());
    assert.ok(error instanceof StoreError, String(error));
    expect(error.message).toMatch(/^No secure connection to Redis: /);
    expect(error.message).toMatch(why);
    expect(error).toMatchObject({ retryable: false, outcome: "not_applied" });
  });

  it("asks whether a silent port uses TLS", async () => {
    const error = await failureOf(`rediss://127.0.0.1:${good.server.port}`);
    expect(String(error)).toContain("Is TLS spoken there?");
  });

  it.each(["ca", "cert", "key"])("names the unreadable file of %s and the reason", async (name) => {
    const files = { ca: authority.ca, ...client, [name]: "/nowhere/file.pem" };
    const error = await failureOf(urlOf(good, files));
    assert.ok(error instanceof InvalidOptionError, String(error));
    expect(error).toMatchObject({ option: name, value: "/nowhere/file.pem" });
    expect(error.message).toContain("ENOENT");
  });

  it("redlock: over TLS, with a certificate", async () => {
    const hosts = [good, strict].map(({ port }) => `127.0.0.1:${port}`).join(",");
    const parameters = query({ ca: authority.ca, ...client, bootstrap: "now" });
    await using locks = await connect(`redlocks://${hosts}?${parameters}`);
    assert.equal(await (await locks.mutex("m").acquire()).release(), true);
  });

  it("redlock: gives the reason of each node at once when there is no majority", async () => {
    const hosts = [good, expired, misnamed].map(({ port }) => `127.0.0.1:${port}`).join(",");
    const url = `redlocks://${hosts}?${query({ ca: authority.ca, bootstrap: "now" })}`;
    const error = await promptFailureOf(url);
    assert.ok(error instanceof QuorumError, String(error));
    expect(error.message).toContain(`127.0.0.1:${expired.port}: No secure connection to Redis`);
    expect(error.message).toContain("another host name");
    expect(error).toMatchObject({ retryable: false, outcome: "not_applied" });
  });

  it("redlock: one bad certificate among three does not matter", async () => {
    const hosts = [good, strict, expired].map(({ port }) => `127.0.0.1:${port}`).join(",");
    const parameters = query({ ca: authority.ca, ...client, bootstrap: "now" });
    await using locks = await connect(`redlocks://${hosts}?${parameters}`);
    assert.equal(await (await locks.mutex("m").acquire()).release(), true);
  });

  it("Cluster: with tls=true its nodes are asked over TLS", async () => {
    const files = filesOf(authority.ca, await authority.sign("cluster"));
    const more = ["--tls-auth-clients", "no", "--tls-cluster", "yes"];
    more.push("--cluster-announce-ip", "127.0.0.1", ...files);
    let port = 0;
    await using _cluster = await onFreePorts(1, ([free = 0]) => {
      port = free;
      return startRedisCluster({ masters: 1, args: ["--tls-port", `${port}`, ...more] });
    });
    const url = `redis+cluster://127.0.0.1:${port}?tls=true`;
    await using locks = await connect(`${url}&${query({ ca: authority.ca })}`);
    assert.equal(await (await locks.mutex("m").acquire()).release(), true);
    const error = await promptFailureOf(url);
    expect(String(error)).toMatch(/No secure connection to Redis: no known authority/);
  });

  it("Sentinel: with tls=true both sentinels and servers are asked over TLS", async () => {
    const tls = configOf(filesOf(authority.ca, client));
    let port = 0;
    await using _sentinel = await onFreePorts(1, ([free = 0]) => {
      port = free;
      // It also asks its master over TLS.
      const lines = [`tls-port ${port}`, "tls-replication yes", "tls-auth-clients no", ...tls];
      return startOneSentinel([...lines, `sentinel monitor holdfast 127.0.0.1 ${good.port} 1`]);
    });
    const url = `redis+sentinel://127.0.0.1:${port}/holdfast`;
    await using locks = await connect(`${url}?${query({ tls: "true", ca: authority.ca })}`);
    assert.equal(await (await locks.mutex("m").acquire()).release(), true);
    const error = await promptFailureOf(`${url}?tls=true`);
    expect(String(error)).toMatch(/No secure connection to Redis: no known authority/);
  });
}
