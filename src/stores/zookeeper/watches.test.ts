import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { beforeEach, describe, expect, it } from "vitest";
import { eventFrame } from "../../../simulation/zookeeper/zookeeper-protocol.js";
import { ManualRuntime, settled } from "../../../test/fixtures/manual-runtime.js";
import { ZookeeperDouble } from "../../../test/fixtures/zookeeper-double.js";
import { Ensemble } from "./client.js";
import { SessionClient, WatchingSession, ZnodeWatch } from "./watches.js";

const PATH = "/locks/a/entry";
const FAILED_MS = 100;

describe("a watch on a znode", () => {
  let runtime: ManualRuntime;
  let server: ZookeeperDouble;
  let told: string[];

  beforeEach(() => {
    runtime = new ManualRuntime();
    server = new ZookeeperDouble();
    told = [];
  });

  async function watch(sinceZxid: bigint): Promise<ZnodeWatch> {
    const session = new WatchingSession(server.ensemble(runtime), "the test");
    const listener = {
      onData: ({ data }: { readonly data: Buffer }) => void told.push(`data ${data}`),
      onGone: () => void told.push("gone"),
      onBroken: () => void told.push("broken"),
    };
    const made = new ZnodeWatch(PATH, session, runtime.timers, listener, sinceZxid);
    await settled();
    return made;
  }

  const requests = () => server.sessions[0]?.requests.map(({ type }) => type);

  it("tells the data, each change of it, and the end", async () => {
    server.znodes.set(PATH, "1");
    await watch(server.zxid);
    server.znodes.set(PATH, "2");
    server.sessions[0]?.send(eventFrame("changed", PATH));
    await settled();
    server.sessions[0]?.send(eventFrame("deleted", PATH));
    await settled();
    expect(told).toEqual(["data 1", "data 2", "gone"]);
  });

  it("tells at once that the znode is gone, on a server that is up to date", async () => {
    await watch(server.zxid);
    expect([told, requests()]).toEqual([["gone"], ["getData"]]);
  });

  it("brings a server that is behind up to date before it believes it", async () => {
    server.onRequest = (request) => {
      if (request.type === "sync") server.znodes.set(PATH, "1");
      return server.answer(request);
    };
    await watch(server.zxid + 1n);
    expect(requests()).toEqual(["getData", "sync", "getData"]);
    expect(told).toEqual(["data 1"]);
  });

  it("is broken, not over, where the server stays behind", async () => {
    await watch(server.zxid + 1n);
    expect(told).toEqual([]);
    await runtime.advance(FAILED_MS);
    expect(told).toEqual(["broken"]);
  });

  it("tells nothing after it was closed, also not the reply under way", async () => {
    server.onRequest = () => null;
    const closed = await watch(server.zxid);
    closed.close();
    server.znodes.set(PATH, "1");
    const [request] = server.sessions[0]?.requests ?? [];
    if (request) server.sessions[0]?.send(server.answer(request));
    await settled();
    server.sessions[0]?.send(eventFrame("deleted", PATH));
    await runtime.advance(FAILED_MS);
    expect(told).toEqual([]);
  });
});

it("ends the calls that wait for a connection when it is closed", async () => {
  const silent = createServer().listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  const settings = { tls: null, chroot: "", credentials: [] };
  const manual = new ManualRuntime();
  const ensemble = new Ensemble([{ host: "127.0.0.1", port }], settings, manual);
  const client = new SessionClient(ensemble, 10_000);
  const waiting = client.connected(5_000);
  await client.close(1_000);
  // No time has passed: a timer that is left would keep the process alive.
  await expect(waiting).rejects.toMatchObject({ code: "closed" });
  await manual.advance(10_000);
  silent.close();
});
