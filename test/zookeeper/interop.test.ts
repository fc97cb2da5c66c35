/** Locks that are shared with Curator and kazoo. Needs Maven and Python, and runs on demand. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { Holdfast } from "../../src/api/holdfast.js";
import { type ZookeeperStoreOptions, zookeeperStore } from "../../src/stores/zookeeper/index.js";
import { startProxy } from "../faults/proxy.js";
import { isFull } from "../fixtures/depth.js";
import { Contender, commandOf, type Library } from "../interop/contender.js";
import { startZookeeper, type ZookeeperServer, zookeeperMissing } from "../servers/zookeeper.js";

const TTL_MS = 4_000;
/** The session of a killed contender ends after its time-out and up to a tick. */
const EXPIRY_MS = 60_000;

interface Pairing {
  readonly library: Library;
  readonly shape: NonNullable<ZookeeperStoreOptions["shape"]>;
  /** The kind of lock of the other library, and ours that it stands against. */
  readonly theirs: "mutex" | "write" | "read";
  readonly ours: "mutex" | "write" | "read";
  readonly excludes: boolean;
}

const pairings: readonly Pairing[] = [
  { library: "Curator", shape: "mutex", theirs: "mutex", ours: "mutex", excludes: true },
  { library: "Curator", shape: "readWrite", theirs: "write", ours: "write", excludes: true },
  { library: "Curator", shape: "readWrite", theirs: "write", ours: "read", excludes: true },
  { library: "Curator", shape: "readWrite", theirs: "read", ours: "write", excludes: true },
  { library: "Curator", shape: "readWrite", theirs: "read", ours: "read", excludes: false },
  { library: "kazoo", shape: "kazoo", theirs: "mutex", ours: "mutex", excludes: true },
  { library: "kazoo", shape: "kazoo", theirs: "write", ours: "read", excludes: true },
  { library: "kazoo", shape: "kazoo", theirs: "read", ours: "write", excludes: true },
  { library: "kazoo", shape: "kazoo", theirs: "read", ours: "read", excludes: false },
];

const isWanted = isFull && zookeeperMissing() === null;

describe.skipIf(!isWanted)("other libraries", { timeout: 240_000 }, () => {
  let server: ZookeeperServer;
  const commands = new Map<Library, readonly string[]>();
  const opened: { close(): Promise<void> }[] = [];
  let names = 0;

  beforeAll(async () => {
    server = await startZookeeper();
    for (const library of ["Curator", "kazoo"] as const) {
      commands.set(library, await commandOf(library));
    }
  }, 300_000);
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((one) => one.close()));
  });
  afterAll(() => server.close());

  async function stage({ library, shape, ours, theirs }: Pairing) {
    names += 1;
    const servers = `127.0.0.1:${server.port}`;
    const contender = await Contender.start(commands.get(library) ?? [], servers);
    const proxy = await startProxy({ targetPort: server.port });
    const store = zookeeperStore({ servers: `127.0.0.1:${proxy.port}/shared`, shape });
    const locks = new Holdfast(store, { ttlMs: TTL_MS });
    opened.push(locks, proxy, { close: () => contender[Symbol.asyncDispose]() });
    const name = `m${names}`;
    const both = locks.readWrite(name);
    const lock = ours === "mutex" ? locks.mutex(name) : both[ours];
    return { contender, lock, target: `${theirs} /shared/${name}`, cut: () => proxy.cut() };
  }

  for (const pairing of pairings) {
    const { library, theirs, ours, excludes } = pairing;
    const verb = excludes ? "waits for" : "shares with";

    test(`our ${ours} ${verb} the ${theirs} of ${library}`, async () => {
      const { contender, lock, target } = await stage(pairing);
      expect(await contender.ask(`acquire ${target}`)).toBe("granted");
      const tried = await lock.tryAcquire();
      expect(tried === null).toBe(excludes);
      if (!excludes) return;
      const waiting = lock.acquire();
      expect(await contender.ask("release")).toBe("released");
      await (await waiting).release();
    });

    test(`the ${theirs} of ${library} ${verb} our ${ours}`, async () => {
      const { contender, lock, target } = await stage(pairing);
      const lease = await lock.acquire();
      expect(await contender.ask(`try ${target}`)).toBe(excludes ? "busy" : "granted");
      if (!excludes) return;
      const waiting = contender.ask(`acquire ${target}`);
      await lease.release();
      expect(await waiting).toBe("granted");
    });
  }

  test.each(["Curator", "kazoo"] as const)(
    "%s follows a holder of ours that is gone",
    async (library) => {
      const shape = library === "kazoo" ? "kazoo" : "mutex";
      const pairing = { library, shape, theirs: "mutex", ours: "mutex", excludes: true } as const;
      const { contender, lock, target, cut } = await stage(pairing);
      await lock.acquire();
      expect(await contender.ask(`try ${target}`)).toBe("busy");
      cut();
      expect(await contender.ask(`acquire ${target}`)).toBe("granted");
    },
  );

  test.each(["Curator", "kazoo"] as const)("a killed holder of %s is followed", async (library) => {
    const shape = library === "kazoo" ? "kazoo" : "mutex";
    const pairing = { library, shape, theirs: "mutex", ours: "mutex", excludes: true } as const;
    const { contender, lock, target } = await stage(pairing);
    expect(await contender.ask(`acquire ${target}`)).toBe("granted");
    const waiting = lock.acquire({ waitMs: EXPIRY_MS });
    contender.kill();
    const lease = await waiting;
    lease.assertHeld();
  });
});
