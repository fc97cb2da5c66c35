/** Holders whose belief is compared with the life of their znodes. */
import assert from "node:assert/strict";
import { Holdfast } from "../../src/api/holdfast.js";
import { StoreError } from "../../src/errors/index.js";
import type { Lease } from "../../src/lease/lease.js";
import { Ensemble } from "../../src/stores/zookeeper/client.js";
import { zookeeperStore } from "../../src/stores/zookeeper/index.js";
import { WatchingSession, ZnodeWatch } from "../../src/stores/zookeeper/watches.js";
import { localRuntime } from "../../src/time/runtime.js";
import type { ProxiedRequest } from "../faults/framing.js";
import { type FaultProxy, startProxy } from "../faults/proxy.js";
import { waitUntil } from "../servers/wait-until.js";
import type { ZookeeperServer } from "../servers/zookeeper.js";
import { Znodes } from "./harness.js";

const SAMPLE_MS = 1;
/** A deadline that moves on by so much was moved by a proof. */
const PROOF_MS = 50;
/** The pause before a server that is behind is asked again. */
const BEHIND_MS = 10;

/** A transaction names its first operation behind its size, its number and its kind. */
const FIRST_OPERATION_AT = 12;
const DELETE = 2;

/** A trial that shows nothing, because a lease was lost before the fault. */
export class VoidTrial extends Error {}

export interface HolderOptions {
  readonly ttlMs: number;
  readonly direct: boolean;
  /** Else the client has used the lock before, and knows its queue. */
  readonly isFirst: boolean;
}

/** Holds one lock, through a proxy to one server. The way to a second server is shut at first. */
export class Holder {
  readonly #proxies: readonly [FaultProxy, FaultProxy];
  readonly locks: Holdfast;
  readonly lease: Lease;
  /** The znode of its entry. */
  readonly path: string;
  readonly #sampler: NodeJS.Timeout;
  #deadlineMs = 0;
  #toldMs = Number.POSITIVE_INFINITY;
  /** When the client itself first asked for the end of its znode or its session. */
  #withdrawnMs = Number.POSITIVE_INFINITY;
  readonly #openedMs = performance.now();
  #provenMs = performance.now();
  #onProof: () => void = () => {};

  private constructor(
    proxies: readonly [FaultProxy, FaultProxy],
    locks: Holdfast,
    lease: Lease,
    path: string,
  ) {
    this.#proxies = proxies;
    this.locks = locks;
    this.lease = lease;
    this.path = path;
    this.#sample();
    this.#sampler = setInterval(() => this.#sample(), SAMPLE_MS);
    lease.signal.addEventListener("abort", () => {
      this.#toldMs = performance.now();
    });
    for (const proxy of proxies) {
      proxy.onRequest((request) => {
        if (isEnd(request)) this.#withdrawnMs = Math.min(this.#withdrawnMs, performance.now());
      });
    }
  }

  /** Throws `VoidTrial` where the lease was lost, or not granted, before its znode was found. */
  static async open(
    [server, second]: readonly [ZookeeperServer, ZookeeperServer],
    name: string,
    { ttlMs, direct, isFirst }: HolderOptions,
  ): Promise<Holder> {
    const proxies = [
      await startProxy({ targetPort: server.port, framing: "zookeeper" }),
      await startProxy({ targetPort: second.port, framing: "zookeeper" }),
    ] as const;
    proxies[1].refuse();
    const servers = proxies.map(({ port }) => `127.0.0.1:${port}`).join(",");
    const locks = new Holdfast(zookeeperStore({ servers: `${servers}/belief`, direct }));
    const startedMs = performance.now();
    try {
      if (!isFirst) await locks.mutex(name).run(() => {}, { ttlMs });
      const lease = await locks.mutex(name).acquire({ ttlMs });
      await using znodes = new Znodes([server.port]);
      const [path] = await znodes.below(`/belief/${name}`);
      if (path) return new Holder(proxies, locks, lease, path);
      assert.notEqual(lease.state, "held", "a lock that is held has a znode");
      throw new VoidTrial("lost before its znode was looked at");
    } catch (error) {
      await close(locks, proxies);
      if (!(error instanceof StoreError)) throw error;
      const afterMs = Math.round(performance.now() - startedMs);
      throw new VoidTrial(`no lock within ${afterMs} ms: ${error.message}`);
    }
  }

  /** Throws `VoidTrial` where the lease was lost. */
  assertHeld(): void {
    if (this.isHeld) return;
    const { reason } = this.lease.signal;
    const times = [this.#openedMs, this.#provenMs].map((ms) => Math.round(this.#toldMs - ms));
    throw new VoidTrial(
      `lost (${reason?.reason ?? reason}) ${times[0]} ms after its grant, and ${times[1]} ms ` +
        "after its last proof",
    );
  }

  /** When the holder stopped believing: the deadline, or the moment at which it was told. */
  get endMs(): number {
    return Math.min(this.#deadlineMs, this.#toldMs);
  }

  /** Whether the client had asked for the end of its znode by then; else the server ended it. */
  hasWithdrawn(byMs: number): boolean {
    return this.#withdrawnMs < byMs;
  }

  get isHeld(): boolean {
    return this.lease.state === "held";
  }

  /** Resolves right after the next proof. */
  proven(): Promise<void> {
    return new Promise((resolve) => {
      this.#onProof = resolve;
    });
  }

  /** The client can reach the second server only. */
  async move(): Promise<void> {
    const [first, second] = this.#proxies;
    await second.heal();
    first.cut();
  }

  /** No byte reaches a server any more: for the server, the process has crashed. */
  crash(): void {
    for (const proxy of this.#proxies) proxy.cut();
  }

  async close(): Promise<void> {
    clearInterval(this.#sampler);
    this.crash();
    await close(this.locks, this.#proxies);
  }

  #sample(): void {
    if (!this.isHeld) return;
    const deadlineMs = performance.now() + this.lease.remainingMs();
    const isProof = deadlineMs > this.#deadlineMs + PROOF_MS;
    this.#deadlineMs = Math.max(this.#deadlineMs, deadlineMs);
    if (!isProof) return;
    this.#provenMs = performance.now();
    this.#onProof();
  }
}

/** Whether a client asks for the end of its znode. */
function isEnd({ command, bytes }: ProxiedRequest): boolean {
  if (command === "MULTI") return bytes.readInt32BE(FIRST_OPERATION_AT) === DELETE;
  return command === "CLOSE" || command === "DELETE";
}

async function close(locks: Holdfast, proxies: readonly FaultProxy[]): Promise<void> {
  await locks.close();
  await Promise.all(proxies.map((proxy) => proxy.close()));
}

/**
 * Sees on some servers when znodes are gone. A server may be behind, so the absence of a znode
 * counts only where that server has shown the znode before.
 */
export class Witness implements AsyncDisposable {
  readonly #sessions: readonly WatchingSession[];
  readonly #goneMs = new Map<string, number>();
  readonly #seen = new Map<WatchingSession, Set<string>>();

  constructor(servers: readonly ZookeeperServer[], holders: readonly Holder[]) {
    const settings = { tls: null, chroot: "", credentials: [] };
    this.#sessions = servers.map(
      ({ address }) =>
        new WatchingSession(new Ensemble([address], settings, localRuntime), "a test"),
    );
    for (const session of this.#sessions) {
      this.#seen.set(session, new Set());
      for (const { path } of holders) this.#watch(session, path);
    }
  }

  /** When the znode was gone on the first of the servers; undefined while it is there. */
  goneMs({ path }: Holder): number | undefined {
    return this.#goneMs.get(path);
  }

  async allGone(holders: readonly Holder[], timeoutMs: number): Promise<void> {
    const what = "all znodes are gone";
    await waitUntil(() => holders.every((holder) => this.goneMs(holder)), { what, timeoutMs });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#sessions.map((session) => session.close(1_000)));
  }

  /** Every server has shown the znodes of all holders, or a lease was lost. */
  async allSeen(holders: readonly Holder[]): Promise<void> {
    const isHeld = (): boolean => holders.every((holder) => holder.isHeld);
    const isSeen = (seen: ReadonlySet<string>): boolean =>
      holders.every(({ path }) => seen.has(path));
    const isDone = (): boolean => !isHeld() || [...this.#seen.values()].every(isSeen);
    await waitUntil(isDone, { what: "all znodes are seen" });
  }

  #watch(session: WatchingSession, path: string): void {
    const seen = this.#seen.get(session);
    new ZnodeWatch(path, session, localRuntime.timers, {
      onData: () => void seen?.add(path),
      onGone: () => {
        if (!seen?.has(path))
          localRuntime.timers.after(BEHIND_MS, () => this.#watch(session, path));
        else if (!this.#goneMs.has(path)) this.#goneMs.set(path, performance.now());
      },
      onBroken: () => this.#watch(session, path),
    });
  }
}
