import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Connection } from "../../src/stores/zookeeper/wire/connection.js";
import {
  CREATOR_ACL,
  check,
  create2,
  exists,
  getChildren2,
  getData,
  multi,
  remove,
  setData,
  sync,
} from "../../src/stores/zookeeper/wire/requests.js";
import type { WatchEvent } from "../../src/stores/zookeeper/wire/watch-table.js";
import { startZookeeper, type ZookeeperServer, zookeeperMissing } from "../servers/zookeeper.js";
import { WireTrial } from "./wire-trial.js";

const missing = zookeeperMissing();

describe.skipIf(missing)(`the client of ZooKeeper${missing ? ` (${missing})` : ""}`, () => {
  let server: ZookeeperServer;
  let trial: WireTrial;
  let connection: Connection;

  beforeAll(async () => {
    server = await startZookeeper();
    trial = new WireTrial(server.port);
  });

  beforeEach(async () => {
    connection = await trial.connect();
  });

  afterEach(async () => {
    await trial.removeAll(connection, "/");
    await trial.close();
  });

  afterAll(async () => {
    await server?.close();
  });

  describe("requests", () => {
    it("make, read, change and remove a znode", async () => {
      const made = await connection.send(create2("/a", { data: Buffer.from("first") }));
      expect(made).toMatchObject({ path: "/a", zxid: made.stat.czxid });
      expect(made.stat).toMatchObject({ version: 0, dataBytes: 5, ephemeralOwner: 0n });
      const changed = await connection.send(setData("/a", Buffer.from("second"), 0));
      expect(changed.stat).toMatchObject({ version: 1, czxid: made.zxid, mzxid: changed.zxid });
      const read = await connection.send(getData("/a"));
      expect(read.data.toString()).toBe("second");
      expect(read.stat).toEqual(changed.stat);
      await connection.send(create2("/a/b"));
      const { names, stat } = await connection.send(getChildren2("/a"));
      expect(names).toEqual(["b"]);
      expect(stat).toMatchObject({ childCount: 1, childVersion: 1 });
      expect((await connection.send(exists("/a/b"))).stat).not.toBeNull();
      await connection.send(remove("/a/b"));
      expect((await connection.send(exists("/a/b"))).stat).toBeNull();
    });

    it("number sequential znodes, whose token is the czxid", async () => {
      const made = await Promise.all(
        Array.from({ length: 20 }, () =>
          connection.send(create2("/n-", { mode: "ephemeral_sequential" })),
        ),
      );
      const paths = made.map(({ path }) => path);
      expect(paths).toEqual([...paths].sort());
      expect(paths[0]).toMatch(/^\/n-\d{10}$/);
      const zxids = made.map(({ zxid }) => zxid);
      expect(new Set(zxids).size).toBe(20);
      expect(made.map(({ stat }) => stat.czxid)).toEqual(zxids);
      const owners = made.map(({ stat }) => stat.ephemeralOwner);
      expect(new Set(owners)).toEqual(new Set([connection.session?.key.id]));
    });

    it("are refused with the reason, and the outcome says so", async () => {
      await connection.send(create2("/a"));
      const refused = (code: string) => ({ code, outcome: "refused" });
      await expect(connection.send(create2("/a"))).rejects.toMatchObject(refused("node_exists"));
      await expect(connection.send(create2("/x/y"))).rejects.toMatchObject(refused("no_node"));
      await expect(connection.send(remove("/x"))).rejects.toMatchObject(refused("no_node"));
      await expect(connection.send(getData("/x"))).rejects.toMatchObject(refused("no_node"));
      await expect(connection.send(remove("/a", 7))).rejects.toMatchObject(refused("bad_version"));
      await expect(connection.send(create2("no-path"))).rejects.toMatchObject({
        outcome: "refused",
      });
      await connection.send(create2("/a/b"));
      await expect(connection.send(remove("/a"))).rejects.toMatchObject(refused("not_empty"));
      await connection.send(create2("/e", { mode: "ephemeral" }));
      const below = connection.send(create2("/e/f"));
      await expect(below).rejects.toMatchObject(refused("no_children_for_ephemerals"));
    });

    it("that are too large are not sent", async () => {
      const large = connection.send(create2("/a", { data: Buffer.alloc(1_100_000) }));
      await expect(large).rejects.toMatchObject({ code: "too_large", outcome: "not_sent" });
      const fits = connection.send(create2("/a", { data: Buffer.alloc(1_000_000) }));
      expect((await fits).stat.dataBytes).toBe(1_000_000);
      expect((await connection.send(getData("/a"))).data).toHaveLength(1_000_000);
    });

    it("sync, and container", async () => {
      const { zxid } = await connection.send(create2("/c", { mode: "container" }));
      expect((await connection.send(sync("/c"))).zxid).toBeGreaterThanOrEqual(zxid);
      await expect(connection.send(create2("/c", { mode: "container" }))).rejects.toMatchObject({
        code: "node_exists",
      });
      expect(connection.lastZxid).toBeGreaterThanOrEqual(zxid);
    });

    it("in a transaction are all done, or none", async () => {
      const done = await connection.send(
        multi([
          create2("/a", { data: Buffer.from("x") }),
          create2("/c", { mode: "container" }),
          check("/a", 0),
          setData("/a", Buffer.from("y")),
          create2("/a/b"),
          remove("/a/b"),
        ]),
      );
      const paths = ["/a", "/c", null, null, "/a/b", null];
      expect(done).toMatchObject({ type: "done", replies: paths.map((path) => ({ path })) });
      expect(done).toMatchObject({ replies: { 3: { stat: { version: 1 } } } });
      expect(done.type === "done" && done.replies.map(({ zxid }) => zxid)).toEqual(
        Array(6).fill(done.zxid),
      );
      const refused = await connection.send(
        multi([create2("/z"), check("/a", 1), check("/missing"), create2("/y")]),
      );
      expect(refused).toMatchObject({
        type: "refused",
        at: 2,
        error: { code: "no_node", outcome: "refused" },
      });
      expect((await connection.send(exists("/z"))).stat).toBeNull();
      expect(await connection.send(multi([]))).toMatchObject({ type: "done", replies: [] });
    });

    it("see only paths below the chroot", async () => {
      await connection.send(create2("/app"));
      const inside = await trial.connect({ chroot: "/app" });
      const events: WatchEvent[] = [];
      await inside.send(exists("/x", (event) => events.push(event)));
      expect(await inside.send(create2("/x"))).toMatchObject({ path: "/x" });
      expect(events).toEqual([{ type: "created", path: "/x" }]);
      expect(await inside.send(getChildren2("/"))).toMatchObject({ names: ["x"] });
      expect(await connection.send(getChildren2("/app"))).toMatchObject({ names: ["x"] });
      await inside.send(sync("/"));
      await inside.endSession();
    });
  });

  describe("a watch", () => {
    it("fires once for each kind of change", async () => {
      const events: string[] = [];
      const listen = (name: string) => (event: WatchEvent) =>
        void events.push(`${name} ${event.type} ${event.path}`);
      await connection.send(exists("/a", listen("exists")));
      await connection.send(create2("/a"));
      expect(events.splice(0)).toEqual(["exists created /a"]);
      await connection.send(getData("/a", listen("data")));
      await connection.send(exists("/a", listen("exists")));
      await connection.send(setData("/a", Buffer.from("x")));
      await connection.send(setData("/a", Buffer.from("y")));
      expect(events.splice(0)).toEqual(["data changed /a", "exists changed /a"]);
      await connection.send(getChildren2("/a", listen("children")));
      await connection.send(create2("/a/b"));
      await connection.send(remove("/a/b"));
      expect(events.splice(0)).toEqual(["children children /a"]);
      await connection.send(getChildren2("/a", listen("children")));
      await connection.send(exists("/a", listen("exists")));
      await connection.send(remove("/a"));
      expect(events).toEqual(["exists deleted /a", "children deleted /a"]);
    });

    it("is not set by a look that fails", async () => {
      const events: WatchEvent[] = [];
      const failed = connection.send(getData("/a", (event) => events.push(event)));
      await expect(failed).rejects.toMatchObject({ code: "no_node" });
      await connection.send(create2("/a"));
      await connection.send(remove("/a"));
      expect(events).toEqual([]);
    });

    it("is told as lost when its connection ends", async () => {
      const other = await trial.connect();
      const events: WatchEvent[] = [];
      await other.send(exists("/a", (event) => events.push(event)));
      other.close();
      expect(events).toEqual([{ type: "lost", path: "/a" }]);
      expect(await other.ended).toMatchObject({ code: "closed" });
      await expect(other.send(exists("/a"))).rejects.toMatchObject({
        code: "closed",
        outcome: "not_sent",
      });
    });
  });

  describe("permissions", () => {
    it("keep other clients away from a znode", async () => {
      const credentials = [{ scheme: "digest", text: "anna:secret" }];
      const anna = await trial.connect({ credentials });
      await anna.send(create2("/a", { acl: CREATOR_ACL }));
      await expect(connection.send(getData("/a"))).rejects.toMatchObject({
        code: "no_auth",
        outcome: "refused",
      });
      await expect(connection.send(create2("/b", { acl: CREATOR_ACL }))).rejects.toMatchObject({
        code: "invalid_acl",
      });
      const again = await trial.connect({ credentials });
      expect((await again.send(getData("/a"))).data).toHaveLength(0);
      await again.send(remove("/a"));
      await anna.endSession();
      await again.endSession();
    });

    it("with a scheme that the server does not know end the connection", async () => {
      const credentials = [{ scheme: "nothing", text: "x" }];
      const other = trial.open({ credentials });
      const request = other.send(create2("/a"));
      await expect(request).rejects.toMatchObject({ code: "auth_failed", outcome: "refused" });
      await expect(other.opened).rejects.toMatchObject({ code: "auth_failed" });
      expect((await connection.send(exists("/a"))).stat).toBeNull();
    });
  });
});
