/**
 * A call ends in time whatever its store does: stores × faults × `waitMs`. The answer is honest,
 * too: a store that says nothing is an error, not a lock that another process holds.
 */
import { channel } from "node:diagnostics_channel";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { connect } from "../../src/api/connect.js";
import { Holdfast } from "../../src/api/holdfast.js";
import { AcquireTimeoutError, StoreError } from "../../src/errors/index.js";
import { channels, type RenewEvent } from "../../src/events/events.js";
import { fileStore } from "../../src/stores/file/index.js";
import { redisStore } from "../../src/stores/redis/index.js";
import { redlockStore } from "../../src/stores/redlock/index.js";
import { type ControlledProcess, startProcess } from "../faults/process.js";
import { type FaultProxy, startProxy } from "../faults/proxy.js";
import { Stopwatch } from "../fixtures/stopwatch.js";
import { startEtcd } from "../servers/etcd.js";
import { startPostgres } from "../servers/postgres.js";
import { startRedis } from "../servers/redis.js";
import { closeAll, type ServerProcess, startAll } from "../servers/server-process.js";
import { waitUntil } from "../servers/wait-until.js";
import { startZookeeper, zookeeperMissing } from "../servers/zookeeper.js";
import { openThreadStore } from "../thread/built-thread.js";

/** docs/options.md: a call ends this long after its `waitMs` at the latest. */
const GRACE_MS = 250;
/** docs/options.md: a try without `waitMs` ends within this. */
const TRY_MS = 1_000;
/** docs/options.md: how long a look and a release may take. */
const LOOK_MS = 6_000;
const RELEASE_MS = 5_000;
/** For the timers and the proxies of a quiet machine. */
const SLACK_MS = 100;

/** A store whose servers can fail in several ways. */
interface Stage {
  /** The words that an error must have when the servers refuse connections. */
  readonly reason: RegExp;
  /** The locks whose way to the store fails. */
  readonly locks: Holdfast;
  /** Another process, as far as the store can tell. */
  readonly other: Holdfast;
  /** The servers refuse connections. */
  refuse(): unknown;
  /** The servers take requests, and answer nothing. */
  silence(): unknown;
  /** All processes of the store are stopped (SIGSTOP). */
  stop(): unknown;
  /** Ends all faults. */
  heal(): unknown;
  close(): Promise<unknown>;
}

type Place = (port: number) => Promise<Holdfast> | Holdfast;

/** Servers with a proxy before each: `open` gets the ports to use. */
async function network(
  servers: readonly ServerProcess[],
  ports: readonly number[],
  open: (ports: readonly number[]) => Promise<Holdfast> | Holdfast,
): Promise<Stage> {
  const proxies: readonly FaultProxy[] = await startAll(
    ports.map((targetPort) => startProxy({ targetPort })),
  );
  const locks = await open(proxies.map(({ port }) => port));
  const other = await open(ports);
  return {
    reason: new RegExp(
      `connect ECONNREFUSED 127.0.0.1:(${proxies.map(({ port }) => port).join("|")})`,
    ),
    locks,
    other,
    refuse: () => proxies.map((proxy) => proxy.cut()),
    silence: () => proxies.map((proxy) => proxy.blackhole("both")),
    stop: () => Promise.all(servers.map((server) => server.pause())),
    async heal() {
      for (const server of servers) server.resume();
      await Promise.all(proxies.map((proxy) => proxy.heal()));
    },
    async close() {
      await Promise.all([locks.close(), other.close()]);
      await closeAll([...proxies, ...servers]);
    },
  };
}

const clients: { close(): unknown }[] = [];
afterAll(() => clients.map((client) => client.close()));

function ioredis(port: number): Redis {
  const client = new Redis({ port, host: "127.0.0.1", retryStrategy: () => 100 });
  client.on("error", () => {});
  clients.push({ close: () => client.disconnect() });
  return client;
}

async function one<S extends ServerProcess & { readonly port: number }>(
  starting: Promise<S>,
  place: Place,
): Promise<Stage> {
  const server = await starting;
  return await network([server], [server.port], ([port = 0]) => place(port));
}

const stages: Readonly<Record<string, () => Promise<Stage>>> = {
  "redis (ioredis)": () =>
    one(startRedis(), (port) => new Holdfast(redisStore({ client: ioredis(port) }))),
  "redis (node-redis)": () =>
    one(startRedis(), async (port) => {
      const client = createClient({ socket: { host: "127.0.0.1", port } });
      client.on("error", () => {});
      await client.connect();
      clients.push({ close: () => client.destroy() });
      return new Holdfast(redisStore({ client }));
    }),
  "redis (thread)": () =>
    one(
      startRedis(),
      async (port) => new Holdfast(await openThreadStore(`redis://127.0.0.1:${port}`)),
    ),
  redlock: async () => {
    const servers = await startAll([1, 2, 3].map(() => startRedis()));
    return await network(
      servers,
      servers.map(({ port }) => port),
      (ports) => {
        const nodeNames = ["a", "b", "c"];
        const redlock = { clients: ports.map(ioredis), nodeNames, bootstrap: "now" } as const;
        return new Holdfast(redlockStore(redlock));
      },
    );
  },
  postgres: () =>
    one(startPostgres(), (port) => connect(`postgres://postgres@127.0.0.1:${port}/postgres`)),
  etcd: () => one(startEtcd(), (port) => connect(`etcd://127.0.0.1:${port}`)),
  zookeeper: () =>
    one(startZookeeper(), (port) => connect(`zookeeper://127.0.0.1:${port}`, { ttlMs: 10_000 })),
  file: fileStage,
};

/** A process that is stopped in a transaction is what a file store waits for. */
async function fileStage(): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-deadlines-"));
  const path = join(folder, "locks.db");
  const locks = new Holdfast(fileStore({ path }));
  const other = await connect(`${pathToFileURL(path)}`);
  let holder: ControlledProcess | null = null;
  const stop = async (): Promise<void> => {
    holder = startProcess(new URL("../file/transaction.mjs", import.meta.url), { args: [path] });
    await holder.receive((message) => message === "in");
    await holder.pause();
  };
  return {
    reason: /locked by process \d+/,
    locks,
    other,
    refuse: stop,
    silence: stop,
    stop,
    async heal() {
      await holder?.kill();
      holder = null;
    },
    async close() {
      await Promise.all([locks.close(), other.close()]);
      rmSync(folder, { recursive: true });
    },
  };
}

/** The error of a call that ends within this time. */
async function errorWithin(withinMs: number, call: Promise<unknown>): Promise<unknown> {
  const watch = new Stopwatch();
  const error = await call.then(
    (value) => `it succeeded: ${value}`,
    (reason: unknown) => reason,
  );
  watch.expectLessThan(withinMs + SLACK_MS);
  return error;
}

/** The store did not answer, and the error says so: it does not claim that the lock is held. */
async function silenceWithin(withinMs: number, call: Promise<unknown>): Promise<StoreError> {
  const error = await errorWithin(withinMs, call);
  expect(error).toBeInstanceOf(StoreError);
  expect((error as StoreError).retryable).toBe(true);
  return error as StoreError;
}

/** Each store has its own servers, so those in the network are tested at the same time. */
const remote = Object.keys(stages).filter((name) => name !== "file");
vi.setConfig({ maxConcurrency: remote.length });
describe.concurrent.each(remote)("%s", testStore);
describe("file", () => testStore("file"));

function testStore(name: string): void {
  const missing = name === "zookeeper" && zookeeperMissing() !== null;
  const inOrder = missing ? test.skip : test.sequential;
  let stage: Stage;
  beforeAll(async () => {
    if (missing) return;
    stage = await (stages[name] as () => Promise<Stage>)();
    await warmUp(stage);
  });
  afterAll(() => stage?.close());

  /** In a store that works again, nothing of the call is left. */
  async function healed(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } finally {
      await stage.heal();
      await waitUntil(
        async () => {
          const { holders, waiters } = await stage.other.inspect("m");
          return holders.length + waiters.length === 0;
        },
        { what: "nothing of the call is left" },
      );
      await warmUp(stage);
    }
  }

  const faults = ["refuse", "silence", "stop"] as const;
  for (const fault of faults) {
    for (const waitMs of [0, 500, 2_000]) {
      inOrder(`${fault}: acquire with waitMs ${waitMs}`, () =>
        healed(async () => {
          await stage[fault]();
          const acquiring = stage.locks.mutex("m").acquire({ waitMs });
          const { message } = await silenceWithin(waitMs + GRACE_MS, acquiring);
          if (fault === "refuse") expect(message).toMatch(stage.reason);
        }),
      );
    }

    inOrder(`${fault}: a try ends within a second`, () =>
      healed(async () => {
        await stage[fault]();
        const mutex = stage.locks.mutex("m");
        const calls = [
          mutex.tryAcquire(),
          mutex.tryRun(() => {}),
          stage.locks.all([mutex, stage.locks.mutex("n")]).tryAcquire(),
          stage.locks.once("m", () => {}, { keepMs: 1_000 }),
        ];
        await Promise.all(calls.map((call) => silenceWithin(TRY_MS, call)));
      }),
    );

    inOrder(`${fault}: every verb keeps waitMs`, () =>
      healed(async () => {
        await stage[fault]();
        const waitMs = 300;
        const { locks } = stage;
        const calls: Promise<unknown>[] = [
          locks.mutex("m").run(() => {}, { waitMs }),
          locks.mutex("m").tryAcquire({ waitMs }),
          locks.once("m", () => {}, { keepMs: 1_000, waitMs }),
          locks.all([locks.mutex("m"), locks.mutex("n")]).acquire({ waitMs }),
          locks.election("m").campaign({ waitMs }),
        ];
        // A redlock has no shared locks.
        if (name !== "redlock") {
          calls.push(locks.readWrite("m").read.acquire({ waitMs }));
          calls.push(locks.semaphore("m", 2).acquire({ waitMs }));
        }
        await Promise.all(calls.map((call) => silenceWithin(waitMs + GRACE_MS, call)));
      }),
    );

    inOrder(`${fault} while it waits`, () =>
      healed(async () => {
        const held = await stage.other.mutex("m").acquire({ ttlMs: 10_000 });
        try {
          const waitMs = 2_000;
          const acquiring = stage.locks.mutex("m").acquire({ waitMs });
          const waiting = silenceWithin(waitMs + GRACE_MS, acquiring);
          await waitUntil(
            async () => name === "file" || (await stage.other.inspect("m")).waiters.length > 0,
            { what: "the call waits" },
          );
          await stage[fault]();
          await waiting;
        } finally {
          await stage.heal();
          await held.release();
        }
      }),
    );
  }

  inOrder("silence: a look ends within 6 s, a release within 5 s", () =>
    healed(async () => {
      const { locks } = stage;
      const lease = await locks.mutex("m").acquire({ ttlMs: 10_000 });
      await stage.silence();
      const looks = [
        locks.inspect("m"),
        locks.mutex("m").isHeld(),
        locks.revoke("m", { token: 1n, reason: "test" }),
        locks.findDeadlocks(),
      ].map((look) => silenceWithin(LOOK_MS, look));
      await Promise.all([errorWithin(RELEASE_MS, lease.release()), ...looks]);
    }),
  );

  inOrder("a renewal without an answer is reported early, and counts once", () =>
    healed(async () => {
      const ttlMs = 6_000;
      const lease = await stage.locks.mutex(name).acquire({ ttlMs });
      const heard: RenewEvent[] = [];
      const hear = (event: unknown): void => {
        // The other stores report their renewals to the same channel.
        if ((event as RenewEvent).name === name) heard.push(event as RenewEvent);
      };
      const renewals = channel(channels.renew);
      renewals.subscribe(hear);
      try {
        const stopwatch = new Stopwatch();
        await stage.stop();
        await waitUntil(() => heard.length > 1, { what: "the failure is reported, and again" });
        const [first] = heard;
        expect(first).toMatchObject({ outcome: "failed", error: expect.any(Error) });
        const usedMs = ttlMs - (first?.remainingMs ?? 0);
        expect(usedMs).toBeLessThan(stopwatch.limitMs(ttlMs * 0.75));
        expect(heard.every(({ outcome }) => outcome === "failed")).toBe(true);
        const since = heard.length;
        await stage.heal();
        const isRenewed = (): boolean => heard.some(({ outcome }) => outcome === "renewed");
        await waitUntil(isRenewed, { what: "the lease is renewed" });
        // All copies are answered by now, since the store answers in order.
        await lease.renew();
        const renewed = heard.slice(since).filter(({ outcome }) => outcome === "renewed");
        expect(renewed.length).toBeLessThanOrEqual(2);
        lease.assertHeld();
      } finally {
        renewals.unsubscribe(hear);
        await stage.heal();
        await lease.release();
      }
    }),
  );

  inOrder("a lock that is held is not taken for a silent store", () =>
    healed(async () => {
      const held = await stage.other.mutex("m").acquire({ ttlMs: 10_000 });
      try {
        for (const waitMs of [0, 500, 2_000]) {
          const watch = new Stopwatch();
          const acquiring = stage.locks.mutex("m").acquire({ waitMs });
          const error = await errorWithin(waitMs + GRACE_MS, acquiring);
          // A busy machine may not bring the answer within the grace: then the call cannot know.
          if (error instanceof StoreError && watch.limitMs(0) > GRACE_MS) continue;
          expect(error).toBeInstanceOf(AcquireTimeoutError);
        }
        expect(await stage.locks.mutex("m").tryAcquire()).toBeNull();
      } finally {
        expect(await held.release()).toBe(true);
      }
    }),
  );
}

/** The connection is up, and an acquisition has been answered. */
async function warmUp({ locks, other }: Stage): Promise<void> {
  for (const one of [locks, other]) {
    await waitUntil(
      () =>
        one
          .mutex("warm")
          .run(() => true, { waitMs: 5_000 })
          .catch(() => false),
      { what: "the store answers" },
    );
  }
}
