import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Ensemble } from "../../src/stores/zookeeper/client.js";
import { SessionClient } from "../../src/stores/zookeeper/watches.js";
import {
  create2,
  exists,
  getData,
  remove,
  setData,
} from "../../src/stores/zookeeper/wire/requests.js";
import { type WatchEvent, WatchTable } from "../../src/stores/zookeeper/wire/watch-table.js";
import { loseReply } from "../faults/message-loss.js";
import { type FaultProxy, startProxy } from "../faults/proxy.js";
import { startZookeeper, type ZookeeperServer, zookeeperMissing } from "../servers/zookeeper.js";
import { WireTrial } from "./wire-trial.js";

const missing = zookeeperMissing();
const SETTINGS = { tls: null, chroot: "", credentials: [] };
const TIMEOUT_MS = 2_000;

describe.skipIf(missing)(
  `faults of ZooKeeper's connections${missing ? ` (${missing})` : ""}`,
  () => {
    let server: ZookeeperServer;
    let proxy: FaultProxy;
    let trial: WireTrial;
    let direct: WireTrial;

    beforeAll(async () => {
      server = await startZookeeper({ tickMs: 200, maxSessionMs: 60_000 });
    });

    beforeEach(async () => {
      proxy = await startProxy({ targetPort: server.port, framing: "zookeeper" });
      trial = new WireTrial(proxy.port);
      direct = new WireTrial(server.port);
    });

    afterEach(async () => {
      const cleaner = await direct.connect();
      await proxy.heal();
      await trial.close();
      await direct.removeAll(cleaner, "/");
      await direct.close();
      await proxy.close();
    });

    afterAll(async () => {
      await server?.close();
    });

    describe("a session", () => {
      it("is resumed with its znodes, by requests that are sent before it is open", async () => {
        const first = await trial.connect();
        const { key, requestedMs } = await first.opened;
        await first.send(create2("/e", { mode: "ephemeral" }));
        const startMs = trial.runtime.clock.exactMs();
        const second = trial.open({ key });
        const [{ stat }, opened] = await Promise.all([second.send(exists("/e")), second.opened]);
        expect(stat?.ephemeralOwner).toBe(key.id);
        expect(opened.key.id).toBe(key.id);
        expect(opened.requestedMs).toBeGreaterThanOrEqual(startMs);
        expect(opened.requestedMs).toBeLessThanOrEqual(trial.runtime.clock.exactMs());
        expect(requestedMs).toBeLessThanOrEqual(startMs);
        // The server ends the connection that the session had before.
        expect(await first.ended).toMatchObject({ code: "connection_lost" });
        await second.endSession();
        const other = await direct.connect();
        expect((await other.send(exists("/e"))).stat).toBeNull();
      });

      it("has a time-out within the bounds of the server", async () => {
        const short = await trial.connect({ timeoutMs: 1 });
        const long = await trial.connect({ timeoutMs: 3_600_000 });
        expect([short.session?.timeoutMs, long.session?.timeoutMs]).toEqual([400, 60_000]);
      });

      it("that has ended is told as expired, and requests behind it are refused", async () => {
        const first = await trial.connect();
        const { key } = await first.opened;
        await first.endSession();
        const second = trial.open({ key });
        const request = second.send(create2("/a"));
        await expect(request).rejects.toMatchObject({
          code: "session_expired",
          outcome: "refused",
        });
        await expect(second.opened).rejects.toMatchObject({ code: "session_expired" });
        const other = await direct.connect();
        expect((await other.send(exists("/a"))).stat).toBeNull();
      });

      it("is not resumed with a wrong password", async () => {
        const first = await trial.connect();
        const { key } = await first.opened;
        const second = trial.open({ key: { id: key.id, password: Buffer.alloc(16, 1) } });
        await expect(second.opened).rejects.toMatchObject({ code: "session_expired" });
      });

      it("lives on while idle, and ends without pings", async () => {
        const kept = await trial.connect({ timeoutMs: 3_000 });
        const quiet = await trial.connect({ timeoutMs: 3_000, isQuiet: true });
        await kept.send(create2("/kept", { mode: "ephemeral" }));
        await quiet.send(create2("/quiet", { mode: "ephemeral" }));
        const other = await direct.connect();
        const event = await new Promise<WatchEvent>((resolve) => {
          void other.send(exists("/quiet", resolve));
        });
        expect(event.type).toBe("deleted");
        expect((await other.send(exists("/kept"))).stat).not.toBeNull();
        expect(kept.isOpen).toBe(true);
        expect(await quiet.ended).toMatchObject({ code: "connection_lost" });
      });

      it("is refused by a server that has not seen its last transaction", async () => {
        const ahead = trial.open({ lastZxid: 2n ** 62n });
        await expect(ahead.opened).rejects.toMatchObject({ code: "connection_lost" });
      });
    });

    describe("a request", () => {
      it("whose reply is lost may have been done, and was", async () => {
        const connection = await trial.connect();
        const loss = loseReply(proxy, { match: "CREATE2" });
        const request = connection.send(create2("/a"));
        await expect(request).rejects.toMatchObject({
          outcome: "unknown",
          code: "connection_lost",
        });
        expect((await loss.struck).args).toEqual(["/a"]);
        const again = await direct.connect();
        expect((await again.send(exists("/a"))).stat).not.toBeNull();
      });

      it("whose reply is cut inside its frame may have been done", async () => {
        for (const bytes of [1, 3, 4, 10, 19, 20, 30]) {
          const connection = await trial.connect();
          for (const link of proxy.links) link.replies.resetAfter(bytes);
          const request = connection.send(create2("/a"));
          await expect(request).rejects.toMatchObject({ outcome: "unknown" });
          expect(await connection.ended).toMatchObject({ code: "connection_lost" });
          await expect(connection.send(exists("/a"))).rejects.toMatchObject({
            outcome: "not_sent",
          });
          const other = await direct.connect();
          await other.send(remove("/a"));
          await other.endSession();
        }
      });

      it("on a connection that was never made was not sent", async () => {
        proxy.refuse();
        const connection = trial.open();
        await expect(connection.send(create2("/a"))).rejects.toMatchObject({
          outcome: "not_sent",
          code: "connection_lost",
        });
      });

      it("to a server that accepts and says nothing ends with the time limit", async () => {
        proxy.pauseAccept();
        const connection = trial.open({ openMs: 300 });
        const request = connection.send(create2("/a"));
        await expect(request).rejects.toMatchObject({ outcome: "unknown", code: "silent" });
      });

      it("is rejected when the link falls silent for two thirds of the time-out", async () => {
        for (const direction of ["requests", "replies", "both"] as const) {
          const startMs = performance.now();
          const connection = await trial.connect({ timeoutMs: TIMEOUT_MS });
          proxy.blackhole(direction);
          const request = connection.send(exists("/a"));
          await expect(request).rejects.toMatchObject({ outcome: "unknown", code: "silent" });
          // Not sooner. The exact moment is the subject of a test with a clock of its own.
          expect(performance.now() - startMs).toBeGreaterThan((2 / 3) * TIMEOUT_MS - 10);
          await proxy.heal();
        }
      });

      it("is answered after the server was stopped for less than that", async () => {
        const connection = await trial.connect({ timeoutMs: 6_000 });
        await server.pause();
        const request = connection.send(exists("/a"));
        const timer = setTimeout(() => server.resume(), 1_000);
        expect((await request).stat).toBeNull();
        clearTimeout(timer);
        expect(connection.isOpen).toBe(true);
      });

      it("is answered after this process was blocked for longer than the time-out", async () => {
        const connection = await trial.connect({ timeoutMs: 6_000 });
        const endMs = performance.now() + 5_000;
        const request = connection.send(exists("/a"));
        // Both the proxy and the client stand still, and the server goes on waiting.
        while (performance.now() < endMs);
        expect((await request).stat).toBeNull();
        expect(connection.isOpen).toBe(true);
      });
    });

    describe("a server that breaks the protocol", () => {
      let foreign: Server;

      afterEach(() => foreign.close());

      /** Answers every chunk with the next of these. */
      async function foreignServer(...answers: readonly Buffer[]): Promise<WireTrial> {
        foreign = createServer((socket) => {
          const rest = [...answers];
          socket.on("error", () => {});
          socket.on("data", () => {
            const next = rest.shift();
            if (next) socket.write(next);
          });
        });
        foreign.listen(0, "127.0.0.1");
        await once(foreign, "listening");
        return new WireTrial((foreign.address() as { port: number }).port);
      }

      const session = Buffer.from(
        "0000002500000000000017700000000000000007000000100102030405060708090a0b0c0d0e0f1000",
        "hex",
      );
      const reply = (xid: number): Buffer => {
        const bytes = Buffer.alloc(20);
        bytes.writeInt32BE(16, 0);
        bytes.writeInt32BE(xid, 4);
        return bytes;
      };

      it.each([
        ["a size that no frame has", Buffer.from("ffffffff", "hex")],
        ["a size above the limit", Buffer.from("7fffffff", "hex")],
        ["another xid", reply(7)],
        ["a reply without its body", reply(1)],
        ["a reply to no request", Buffer.concat([reply(1), reply(2)])],
        ["an event of no known kind", reply(-1)],
      ])("by %s ends the connection", async (_, answer) => {
        const strange = await foreignServer(session, answer);
        const connection = await strange.connect();
        const request = connection.send(getData("/a"));
        await expect(request).rejects.toMatchObject({ code: "unreadable", outcome: "unknown" });
        expect(await connection.ended).toMatchObject({ code: "unreadable" });
      });

      it("by the answer to a credential before that to the session is understood", async () => {
        const strange = await foreignServer(Buffer.concat([reply(-4), session]));
        const credentials = [{ scheme: "digest", text: "anna:secret" }];
        const connection = await strange.connect({ credentials });
        expect(connection.session?.key.id).toBe(7n);
        connection.close();
      });

      it("by a session that is not one ends the connection", async () => {
        const none = Buffer.from(session);
        none.writeBigInt64BE(0n, 12);
        const strange = await foreignServer(none);
        await expect(strange.connect()).rejects.toMatchObject({ code: "unreadable" });
      });

      it("by the session of another client ends the connection", async () => {
        const strange = await foreignServer(session);
        const connection = strange.open({ key: { id: 8n, password: Buffer.alloc(16) } });
        await expect(connection.opened).rejects.toMatchObject({ code: "unreadable" });
      });

      it("by a read-only session is refused", async () => {
        const readOnly = Buffer.from(session);
        readOnly[readOnly.length - 1] = 1;
        const strange = await foreignServer(readOnly);
        const connection = strange.open();
        await expect(connection.send(exists("/a"))).rejects.toMatchObject({
          code: "read_only",
          outcome: "refused",
        });
      });

      it("by no answer gets no more requests than the limit", async () => {
        const strange = await foreignServer(session);
        const connection = await strange.connect();
        const all = Array.from({ length: 16_385 }, () => connection.send(exists("/a")));
        await expect(all.pop()).rejects.toMatchObject({
          code: "too_many_requests",
          outcome: "not_sent",
        });
        connection.close();
        const results = await Promise.allSettled(all);
        const outcomes = results.map((one) => one.status === "rejected" && one.reason.outcome);
        expect(new Set(outcomes)).toEqual(new Set(["not_sent"]));
      });
    });

    describe("the client of a session", () => {
      let client: SessionClient;

      beforeEach(() => {
        const address = { host: "127.0.0.1", port: proxy.port };
        client = new SessionClient(new Ensemble([address], SETTINGS, trial.runtime), 6_000);
      });

      afterEach(() => client.close(1_000));

      it("restores its watches after a reset, also those that fired meanwhile", async () => {
        const other = await direct.connect();
        for (const path of ["/data", "/gone", "/still"]) await other.send(create2(path));
        const events: WatchEvent[] = [];
        const waiting: (() => void)[] = [];
        const listen = (event: WatchEvent): void => {
          events.push(event);
          waiting.shift()?.();
        };
        const next = (): Promise<void> => new Promise((resolve) => waiting.push(resolve));
        const connection = await client.connected(5_000);
        await connection.send(getData("/data", listen));
        await connection.send(exists("/gone", listen));
        await connection.send(exists("/made", listen));
        await connection.send(exists("/still", listen));
        await connection.send(exists("/never", listen));
        const told = Promise.all([next(), next(), next()]);
        proxy.cut();
        await connection.ended;
        await other.send(setData("/data", Buffer.from("x")));
        await other.send(remove("/gone"));
        await other.send(create2("/made"));
        await proxy.heal();
        await told;
        expect(events.map(({ type, path }) => `${type} ${path}`).sort()).toEqual([
          "changed /data",
          "created /made",
          "deleted /gone",
        ]);
        const late = next();
        await other.send(remove("/still"));
        await late;
        expect(events.at(-1)).toEqual({ type: "deleted", path: "/still" });
        const again = await client.connected(5_000);
        expect(again.session?.key.id).toBe(connection.session?.key.id);
      });

      it("tells its watches that they are lost when the session has ended", async () => {
        const connection = await client.connected(5_000);
        const { key } = await connection.opened;
        const lost = new Promise<WatchEvent>((resolve) => {
          void connection.send(exists("/a", resolve));
        });
        await connection.send(exists("/a"));
        proxy.cut();
        const killer = await direct.connect({ key });
        await killer.endSession();
        await proxy.heal();
        expect(await lost).toEqual({ type: "lost", path: "/a" });
        const again = await client.connected(5_000);
        expect(again.session?.key.id).not.toBe(key.id);
      });

      it("sends nothing for a caller that has stopped waiting", async () => {
        proxy.refuse();
        await expect(client.connected(200)).rejects.toMatchObject({
          code: "not_connected",
          outcome: "not_sent",
          message: expect.stringContaining("ECONNREFUSED"),
        });
        const { connections } = proxy.counters;
        await proxy.heal();
        const connection = await client.connected(5_000);
        expect(proxy.counters.connections).toBe(connections + 1);
        expect((await connection.send(exists("/a"))).stat).toBeNull();
      });

      it("opens no connection after its close", async () => {
        const connection = await client.connected(5_000);
        await client.close(1_000);
        expect(await connection.ended).toMatchObject({ code: "closed" });
        await expect(client.connected(1_000)).rejects.toMatchObject({ code: "closed" });
      });
    });

    it("restores watches in requests that stay below the size limit", async () => {
      const watches = new WatchTable();
      const connection = await trial.connect({ watches });
      const { key } = await connection.opened;
      const name = "x".repeat(500);
      const fired: number[] = [];
      const looks = Array.from({ length: 3_000 }, (_, at) =>
        connection.send(exists(`/${name}-${at}`, () => fired.push(at))),
      );
      await Promise.all(looks);
      connection.close();
      expect(watches.size).toBe(3_000);
      const { lastZxid } = connection;
      const other = await direct.connect();
      await other.send(create2(`/${name}-7`));
      const again = await trial.connect({ key, watches, lastZxid });
      await again.send(exists("/a"));
      expect(fired).toEqual([7]);
      await other.send(create2(`/${name}-2999`));
      await again.send(exists("/a"));
      expect(fired).toEqual([7, 2_999]);
      expect(watches.size).toBe(2_998);
    });
  },
);
