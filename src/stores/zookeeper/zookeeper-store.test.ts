import { expect, test } from "vitest";
import { zookeeperStore } from "./zookeeper-store.js";

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
