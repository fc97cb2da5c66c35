import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, test } from "vitest";
import { Holdfast } from "../../api/holdfast.js";
import { StoreError } from "../../errors/index.js";
import { zookeeperStore } from "./index.js";

test.for([{ name: "app" }, { name: "", password: "x" }, { name: "a:b", password: "x" }])(
  "a user that cannot be proven is refused, and not shown: %j",
  (user) => {
    const options = { servers: "127.0.0.1:2181", user };
    const open = () => zookeeperStore(options as Parameters<typeof zookeeperStore>[0]);
    expect(open).toThrow(/user.*\(hidden\).*must be/);
  },
);

test("a name of a user may have any character but a colon", () => {
  const user = { name: "a b@c", password: "p:q" };
  expect(zookeeperStore({ servers: "127.0.0.1:2181", user }).name).toBe("zookeeper");
});

test("a ttl that no request can ask for is refused before a server is asked", async () => {
  let connections = 0;
  const server = createServer(() => {
    connections += 1;
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const locks = new Holdfast(zookeeperStore({ servers: `127.0.0.1:${port}` }));
  try {
    const error = await locks
      .mutex("m")
      .acquire({ ttlMs: 2 ** 31, storeTimeoutMs: 1_000 })
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ outcome: "not_applied", retryable: false });
    expect((error as Error).message).toMatch(/at most 2147483647 ms, and ttlMs is 2147483648/);
    expect(connections).toBe(0);
  } finally {
    await locks.close();
    server.close();
  }
});
