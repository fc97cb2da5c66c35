import { describe, expect, it } from "vitest";
import { connect } from "../api/connect.js";
import { Holdfast } from "../api/holdfast.js";
import { InvalidOptionError } from "../errors/index.js";
import { etcdStore } from "../stores/etcd/index.js";
import { fileStore } from "../stores/file/index.js";
import { memoryStore } from "../stores/memory/index.js";
import { redisStore } from "../stores/redis/index.js";
import { redlockStore } from "../stores/redlock/index.js";

/** Calls with arguments that their types forbid. */
// biome-ignore lint/suspicious/noExplicitAny: programs in JavaScript have no types.
type Untyped = any;

const stores: Readonly<Record<string, Untyped>> = {
  memoryStore,
  fileStore,
  redisStore,
  redlockStore,
  etcdStore,
};

/** As much of a client as the stores look at before they use it. */
const redis = { isOpen: true, sendCommand() {}, connect() {}, on() {}, options: {} };

async function problem(act: () => unknown): Promise<InvalidOptionError> {
  const error = await new Promise((resolve) => resolve(act())).catch((reason) => reason);
  if (error instanceof InvalidOptionError) return error;
  throw new Error(`It was taken: ${error}`);
}

describe("a store", () => {
  it.each(Object.keys(stores))("%s knows its options, and no others", async (name) => {
    const error = await problem(() => stores[name]({ offerms: 500, hunter2: 1, client: redis }));
    expect(error.message).toContain("Unknown option");
    const hidden = await problem(() => stores[name]({ password: "hunter2" }));
    expect(hidden).toMatchObject({ option: "password" });
    expect(JSON.stringify(hidden) + hidden.message).not.toContain("hunter2");
  });

  it.each(Object.keys(stores))("%s takes an object and says so", async (name) => {
    for (const given of ["some/locks.db", 5, null, [redis, redis, redis], () => {}]) {
      const error = await problem(() => stores[name](given));
      expect(error).toMatchObject({ option: "options" });
      expect(error.message).toContain(`${name}({ `);
    }
  });

  it.each([
    ["redisStore", { client: redis, namspace: "x" }, "namspace", "namespace"],
    ["redlockStore", { clients: [], nodeTimeout: 5 }, "nodeTimeout", "nodeTimeoutMs"],
    ["etcdStore", { endpoints: ["a:2379"], nameSpace: "x" }, "nameSpace", "namespace"],
    ["memoryStore", { offer: 5 }, "offer", "offerMs"],
    ["fileStore", { paht: "locks.db" }, "paht", "path"],
  ])("%s says what was meant", async (name, options, wrong, right) => {
    const { message } = await problem(() => stores[name](options));
    expect(message).toBe(`Unknown option "${wrong}": did you mean ${right}?`);
  });

  it("lists its options where none is near", async () => {
    const { message } = await problem(() => stores.fileStore({ file: "locks.db" }));
    expect(message).toBe('Unknown option "file". The options are: path, namespace, offerMs.');
  });

  it.each([["redisStore", redis]])(
    "%s tells a client from the options that hold one",
    async (name, client) => {
      const { message } = await problem(() => stores[name](client));
      expect(message).toContain(`It must be an object with the client in it: ${name}({ client })`);
      const missing = await problem(() => stores[name]());
      expect(missing.message).toMatch(/^Invalid client: undefined\. It must be an? \w+/);
      const wrong = await problem(() => stores[name]({ client: {} }));
      expect(wrong.message).toMatch(/^Invalid client: a value of type object\./);
    },
  );

  it.each([
    ["endpoints", {}],
    ["endpoints", { endpoints: [] }],
    ["endpoints", { endpoints: ["http://a:2379"] }],
    ["endpoints", { endpoints: ["a:65536"] }],
    ["user", { endpoints: ["a"], user: { name: "app" } }],
    ["client", { client: {} }],
  ])("of etcd are checked: %s", async (option, options) => {
    expect(await problem(() => stores.etcdStore(options))).toMatchObject({ option });
  });

  it("in memory takes the space of another store only", async () => {
    expect(await problem(() => stores.memoryStore({ space: "x" }))).toMatchObject({
      option: "space",
    });
  });

  it("in a file takes no URL for a path", async () => {
    const { message } = await problem(() => fileStore({ path: "file:/var/locks.db" }));
    expect(message).toContain("connect(url)");
  });

  it.each([
    ["fileStore", {}],
    ["redisStore", { client: redis }],
    ["redlockStore", { clients: [redis, redis] }],
    ["etcdStore", { endpoints: ["a:2379"] }],
  ])("%s refuses a namespace that would meet others", async (name, options) => {
    for (const namespace of ["\ud800", 5, null]) {
      const error = await problem(() => stores[name]({ ...options, namespace }));
      expect(error).toMatchObject({ option: "namespace", rule: "must be a well-formed string" });
    }
  });
});

describe("a URL", () => {
  it.each([
    ["redis://h?namspace=x", "namspace", "namespace"],
    ["redlock://h,i?node-timeout-ms=5", "node-timeout-ms", "nodeTimeoutMs"],
    ["etcd://h?namespaces=x", "namespaces", "namespace"],
    ["file:/tmp/locks.db?namspace=x", "namspace", "namespace"],
  ])("%s: says which parameter was meant", async (url, wrong, right) => {
    const { message } = await problem(() => connect(url));
    expect(message).toBe(`Unknown parameter "${wrong}": did you mean ${right}?`);
  });

  it("of a memory has one parameter", async () => {
    const { message } = await problem(() => connect("memory:x?namespace=y"));
    expect(message).toBe('Unknown parameter "namespace". The parameters are: warnInProduction.');
  });

  it.each(["redis://h?namespace=a&namespace=b", "file:/tmp/x?namespace=a&namespace=b"])(
    "%s: says what is given twice",
    async (url) => {
      expect((await problem(() => connect(url))).message).toContain("must be given once");
    },
  );

  it.each(["redis:6379", "redis:cache:6379", "etcd:2379"])(
    "%s: is not taken for a path",
    async (url) => {
      expect((await problem(() => connect(url))).message).toContain("must have its host behind //");
    },
  );

  it.each([
    ["redis://admin:hunter2@h:99999", "a port up to 65535"],
    ["redis+cluster://admin:hunter2@h:1,i:99999", "a port up to 65535"],
    ["redis://admin:hunter2#x@h:1", "percent-encoded"],
    ["redis://admin:hunter2/x@h:1", "percent-encoded"],
    ["redis://admin:12#hunter2@h:1", "percent-encoded"],
    ["redis://admin:12?hunter2@h:1", "percent-encoded"],
    ["file:/tmp/hunter2#1.db", "percent-encoded"],
    ["redis://admin:hunter2@h:x", "hosts as host:port"],
    ["etcd://admin:hunter2@h/prod", "no path; use ?namespace="],
  ])("%s: says what is wrong, and shows no secret", async (url, rule) => {
    const { message } = await problem(() => connect(url));
    expect(message).toContain(rule);
    expect(message).not.toContain("hunter2");
  });

  it("may misspell its scheme, and hears which was meant", async () => {
    const { message } = await problem(() => connect("reddis://admin:hunter2@h"));
    expect(message).toBe('Unknown scheme "reddis:": did you mean redis:?');
  });

  it.each([undefined, ""])("that is %j may come from a variable that is not set", async (url) => {
    const { message } = await problem(() => connect(url as Untyped));
    expect(message).toContain("Is the environment variable that should hold it set?");
  });
});

describe("a call", () => {
  const locks: Untyped = new Holdfast(memoryStore());
  const first = (list: AsyncGenerator): Promise<unknown> => list.next();

  it.each<[string, () => unknown, string]>([
    ["new Holdfast", () => new Holdfast(memoryStore(), { wait: 5 } as Untyped), "waitMs"],
    ["mutex", () => locks.mutex("x", { ttl: 5 }), "ttlMs"],
    ["readWrite", () => locks.readWrite("x", { ttl: 5 }), "ttlMs"],
    ["semaphore", () => locks.semaphore("x", 2, { wieght: 5 }), "weight"],
    ["all", () => locks.all(["x", "y"], { ttl: 5 }), "ttlMs"],
    ["all.run", () => locks.all(["x", "y"]).run(() => {}, { ttl: 5 }), "ttlMs"],
    ["all.tryRun", () => locks.all(["x", "y"]).tryRun(() => {}, { ttl: 5 }), "ttlMs"],
    ["election", () => locks.election("x", { ttl: 5 }), "ttlMs"],
    ["lead", () => locks.election("x").lead(() => {}, { ttl: 5 }), "ttlMs"],
    ["observe", () => first(locks.election("x").observe({ every: 5 })), "everyMs"],
    ["acquire", () => locks.mutex("x").acquire({ timeout: 5 }), "waitMs"],
    ["acquire", () => locks.mutex("x").acquire({ retryCount: 5 }), "waitMs"],
    ["acquire", () => locks.mutex("x").acquire({ expiry: 5 }), "ttlMs"],
    ["tryAcquire", () => locks.mutex("x").tryAcquire({ ttl: 5 }), "ttlMs"],
    ["run", () => locks.mutex("x").run(() => {}, { ttl: 5 }), "ttlMs"],
    ["tryRun", () => locks.mutex("x").tryRun(() => {}, { ttl: 5 }), "ttlMs"],
    ["once", () => locks.once("x", () => {}, { keep: 5 }), "keepMs"],
    ["beginOnce", () => locks.beginOnce("x", { keepMS: 5 }), "keepMs"],
    ["list", () => first(locks.list({ prefx: "x" })), "prefix"],
    ["list", () => first(locks.list({ space: "locks" })), "lock"],
    ["inspect", () => locks.inspect("x", "elections"), "election"],
    ["findDeadlocks", () => locks.findDeadlocks({ prefx: "x" }), "prefix"],
    ["revoke", () => locks.revoke("x", { tokn: 5n, reason: "y" }), "token"],
    ["revoke", () => locks.revoke("x", { token: 5n, reason: "y" }, "onse"), "once"],
    ["resume", () => locks.resume("x", { ttl: 5 }), "ttlMs"],
  ])("of %s refuses what it does not know, and says what was meant", async (_, act, right) => {
    const { message } = await problem(act);
    expect(message).toContain(`did you mean ${right}?`);
  });

  it.each<[string, () => unknown]>([
    ["mutex", () => locks.mutex("x", 5_000)],
    ["all", () => locks.all(["x"], 5_000)],
    ["all.tryAcquire", () => locks.all(["x"]).tryAcquire(5_000)],
    ["election", () => locks.election("x", 5_000)],
    ["once", () => locks.once("x", () => {}, 5_000)],
    ["list", () => first(locks.list("invoice:"))],
    ["findDeadlocks", () => locks.findDeadlocks("invoice:")],
    ["revoke", () => locks.revoke("x", 5n)],
  ])("of %s takes its options as an object", async (_, act) => {
    expect(await problem(act)).toMatchObject({ option: "options" });
  });

  it("of lead needs a body, before it campaigns", async () => {
    expect(await problem(() => locks.election("x").lead())).toMatchObject({ option: "body" });
  });

  it.each<[string, () => unknown]>([
    ["lead(async (lease)", () => locks.election("x").lead()],
    ["once(name, async (lease)", () => locks.once("x", undefined, { keepMs: 5 })],
    ["tryRun(async (lease)", () => locks.mutex("x").tryRun()],
    ["tryRun(async (lease)", () => locks.all(["x"]).tryRun()],
    ["run(async (lease)", () => locks.all(["x"]).run()],
  ])("without a body is shown as %s", async (call, act) => {
    expect((await problem(act)).message).toContain(`as in ${call} => { … }, options)`);
  });

  it("of list needs a prefix that is a text", async () => {
    expect(await problem(() => first(locks.list({ prefix: 5 })))).toMatchObject({
      option: "prefix",
    });
  });
});
