/** Five ways to wait for a lock, as programs of a few lines. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { Etcd3 } from "etcd3";
import { Holdfast } from "holdfast";
import { redisStore } from "holdfast/redis";
import { Redis } from "ioredis";
import { waitUntil } from "../../test/servers/wait-until.js";

const KEY = "price";
const TTL_S = 60;
/** The interval of the article on spinning. */
const SPIN_MS = 50;

export interface Waiter {
  /** Calls `onWaiting` when the lock is taken, and resolves with the release when it is ours. */
  acquire(onWaiting: () => void): Promise<() => Promise<unknown>>;
  close(): Promise<unknown>;
}

/** Tries again and again. */
export async function spin(port: number): Promise<Waiter> {
  const redis = new Redis(port);
  return {
    async acquire(onWaiting) {
      while ((await redis.set(KEY, "held", "EX", TTL_S, "NX")) === null) {
        onWaiting();
        await pause(SPIN_MS);
      }
      return () => redis.del(KEY);
    },
    close: () => redis.quit(),
  };
}

/** Every release is published, and every waiter tries. */
export async function publishAndSubscribe(port: number): Promise<Waiter> {
  const [redis, messages] = [new Redis(port), new Redis(port)];
  await messages.subscribe(`${KEY}:released`);
  return {
    async acquire(onWaiting) {
      for (;;) {
        // Listens before it tries: no message is missed between the two.
        const released = once(messages, "message");
        if ((await redis.set(KEY, "held", "EX", TTL_S, "NX")) !== null) break;
        onWaiting();
        await released;
      }
      return () => redis.multi().del(KEY).publish(`${KEY}:released`, "").exec();
    },
    close: () => Promise.all([redis.quit(), messages.quit()]),
  };
}

/** Every waiter watches the one key of the lock. */
export async function watchAll(url: string): Promise<Waiter> {
  const client = new Etcd3({ hosts: [url] });
  const lease = client.lease(TTL_S);
  const watcher = await client.watch().key(KEY).create();
  return {
    async acquire(onWaiting) {
      for (;;) {
        const deleted = once(watcher, "delete");
        const put = lease.put(KEY).value("held");
        const { succeeded } = await client.if(KEY, "Create", "==", 0).then(put).commit();
        if (succeeded) return () => client.delete().key(KEY).exec();
        onWaiting();
        await deleted;
      }
    },
    async close() {
      await watcher.cancel();
      await lease.revoke();
      client.close();
    },
  };
}

/** Every waiter has a key of its own, and watches the one before it. */
export async function watchPredecessor(url: string): Promise<Waiter> {
  const client = new Etcd3({ hosts: [url] });
  const lease = client.lease(TTL_S);
  const key = `${KEY}/${await lease.grant()}`;
  const predecessor = async (revision: string): Promise<string | undefined> => {
    const { kvs } = await client.getAll().prefix(`${KEY}/`).sort("Create", "Ascend").exec();
    const before = kvs.filter((one) => BigInt(one.create_revision) < BigInt(revision));
    return before.at(-1)?.key.toString();
  };
  return {
    async acquire(onWaiting) {
      const { header } = await lease.put(key).value("").exec();
      let before = await predecessor(header.revision);
      while (before !== undefined) {
        const watcher = await client.watch().key(before).startRevision(header.revision).create();
        const deleted = once(watcher, "delete");
        onWaiting();
        await deleted;
        await watcher.cancel();
        before = await predecessor(header.revision);
      }
      return () => client.delete().key(key).exec();
    },
    async close() {
      await lease.revoke();
      client.close();
    },
  };
}

/** Holdfast: the release gives the lock to the next one, and tells it alone. */
export async function directHandoff(port: number): Promise<Waiter> {
  const redis = new Redis(port);
  const locks = new Holdfast(redisStore({ client: redis }));
  const id = randomUUID();
  return {
    async acquire(onWaiting) {
      let isOver = false;
      const attempt = locks.mutex(KEY).acquire({ ttlMs: TTL_S * 1000, meta: { id } });
      const ended = attempt.finally(() => {
        isOver = true;
      });
      const isQueued = async (): Promise<boolean> => {
        if (isOver) return true;
        return (await locks.inspect(KEY)).waiters.some(({ meta }) => meta.id === id);
      };
      await waitUntil(isQueued, { what: "a place in the queue" });
      if (!isOver) onWaiting();
      const lease = await ended;
      return () => lease.release();
    },
    async close() {
      await locks.close();
      await redis.quit();
    },
  };
}
