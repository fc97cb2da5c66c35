import assert from "node:assert/strict";
import type { Harness } from "../../src/conformance/index.js";
import type { Store } from "../../src/contract/store.js";
import { Ensemble } from "../../src/stores/zookeeper/client.js";
import { nullIfAbsent } from "../../src/stores/zookeeper/errors.js";
import { openZookeeperStore } from "../../src/stores/zookeeper/index.js";
import { WatchingSession } from "../../src/stores/zookeeper/watches.js";
import {
  childrenIn,
  create2,
  getData,
  multi,
  remove,
  setData,
} from "../../src/stores/zookeeper/wire/requests.js";
import { localRuntime } from "../../src/time/runtime.js";
import { type FaultProxy, startProxy } from "../faults/proxy.js";
import { waitUntil } from "../servers/wait-until.js";
import type { ZookeeperServer } from "../servers/zookeeper.js";
import { zookeeperFaults } from "./proxies.js";

const LIMIT_MS = 5_000;
const TOUCH_MS = 500;

/** A URL for the given ports: the first is the host, the other ones are parameters. */
export function zookeeperUrl(ports: readonly number[], namespace = ""): URL {
  const [first = 0, ...others] = ports;
  const url = new URL(`zookeeper://127.0.0.1:${first}/locks`);
  for (const port of others) url.searchParams.append("host", `127.0.0.1:${port}`);
  if (namespace !== "") url.searchParams.set("namespace", namespace);
  return url;
}

/** A client beside the store, to look at the znodes and to remove them. */
export class Znodes implements AsyncDisposable {
  readonly #session: WatchingSession;

  constructor(ports: readonly number[]) {
    const addresses = ports.map((port) => ({ host: "127.0.0.1", port }));
    const settings = { tls: null, chroot: "", credentials: [] };
    this.#session = new WatchingSession(
      new Ensemble(addresses, settings, localRuntime),
      "the test",
    );
  }

  /** Whether the server is in touch with its leader. */
  async isInTouch(): Promise<boolean> {
    const asked = this.#session.useLatest((one) => one.send(childrenIn("/")), TOUCH_MS);
    return await asked.then(
      () => true,
      () => false,
    );
  }

  /** All znodes below a path, children behind their parents. */
  async below(path: string): Promise<string[]> {
    const { names } = await this.#session.useLatest((one) => one.send(childrenIn(path)), LIMIT_MS);
    const found = await Promise.all(
      names.map(async (name) => [`${path}/${name}`, ...(await this.below(`${path}/${name}`))]),
    );
    return found.flat();
  }

  /** The data of a znode. */
  async read(path: string): Promise<string> {
    const { data } = await this.#session.use((one) => one.send(getData(path)), LIMIT_MS);
    return data.toString();
  }

  /** Makes sequential znodes by requests that are sent together; returns their paths. */
  async makeTogether(prefixes: readonly string[]): Promise<string[]> {
    const requests = prefixes.map((prefix) => create2(prefix, { mode: "ephemeral_sequential" }));
    const made = await this.#session.use(
      (one) => Promise.all(requests.map((request) => one.send(request))),
      LIMIT_MS,
    );
    return made.map(({ path }) => path);
  }

  async write(path: string, data: string): Promise<void> {
    await this.#session.use((one) => one.send(setData(path, Buffer.from(data))), LIMIT_MS);
  }

  async remove(path: string): Promise<void> {
    await this.#session.use((one) => one.send(remove(path)).catch(nullIfAbsent), LIMIT_MS);
  }

  /** Removes all znodes below a path at the same time: no waiter sees a part of it. */
  async removeBelow(path: string): Promise<void> {
    const isGone = async (): Promise<boolean> => {
      const parts = (await this.below(path)).reverse().map((one) => remove(one));
      const { type } = await this.#session.use((one) => one.send(multi(parts)), LIMIT_MS);
      // It is refused if a client came or left in between.
      return type === "done";
    };
    await waitUntil(isGone, { what: `nothing is left below ${path}` });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#session.close(LIMIT_MS);
  }
}

/** The same store; its proxies close behind it. */
function closingWith(store: Store, proxies: readonly FaultProxy[]): Store {
  const close = store.close.bind(store);
  store.close = async () => {
    await close();
    await Promise.all(proxies.map((proxy) => proxy.close()));
  };
  return store;
}

/** ZooKeeper keeps marks for ever: clients that list them remove those whose time is over. */
async function removeOldMarks(url: URL): Promise<void> {
  const store = await openZookeeperStore(url);
  for await (const { mark } of store.list("once", "")) assert.ok(mark, "only marks are left");
  await store.close();
}

/** `/<space>` and `/<space>/<name>`: containers, which ZooKeeper removes when they are empty. */
function isParent(path: string): boolean {
  return path.split("/").length <= 3;
}

/** The cases that do not apply, in any runtime. */
export const ZOOKEEPER_EXEMPT: NonNullable<Harness["exempt"]> = {
  "renew by hand makes a lease last longer, never shorter":
    "a znode cannot change its session, so a renewal lasts for the ttl of the acquire",
};

/** `members` is called late: the servers start after the cases are registered. */
export function zookeeperHarness(
  members: () => readonly ZookeeperServer[],
  { ttlMs = 3_000 }: { readonly ttlMs?: number } = {},
): Harness {
  const ports = (): number[] => members().map(({ port }) => port);
  const rootOf = (namespace: string): string => `/locks/holdfast:in/${namespace}`;
  return {
    traits: {
      scope: "network",
      modes: ["exclusive", "shared"],
      fifo: true,
      tokenSpan: false,
      transferable: true,
      marks: true,
      minTtlMs: 100,
    },
    ttlMs,
    open: (namespace) => openZookeeperStore(zookeeperUrl(ports(), namespace)),
    child: {
      module: new URL("../stores/child.mjs", import.meta.url),
      argument: (namespace) => zookeeperUrl(ports(), namespace).href,
    },
    faults: {
      kinds: ["loseReply", "keepBack", "dropPush", "cut", "heal"],
      async open(namespace) {
        const proxies = await Promise.all(
          ports().map((targetPort) => startProxy({ targetPort, framing: "zookeeper" })),
        );
        const url = zookeeperUrl(
          proxies.map(({ port }) => port),
          namespace,
        );
        const store = await openZookeeperStore(url);
        return { store: closingWith(store, proxies), ...zookeeperFaults(proxies) };
      },
    },
    exempt: ZOOKEEPER_EXEMPT,
    async wipe(namespace) {
      await using znodes = new Znodes(ports());
      await znodes.removeBelow(rootOf(namespace));
    },
    async leftovers(namespace) {
      await removeOldMarks(zookeeperUrl(ports(), namespace));
      await using znodes = new Znodes(ports());
      const root = rootOf(namespace);
      const found = await znodes.below(root);
      return found.filter((path) => !isParent(path.slice(root.length)));
    },
  };
}
