/** A program that takes one lock and ends; it loads only what its contestant needs. */
import { Redis } from "ioredis";

const [name = "", port = ""] = process.argv.slice(2);
const LOCK = `first lock of ${name}`;
const TTL_MS = 30_000;

const client = new Redis(Number(port));

const pairs: Record<string, () => Promise<unknown>> = {
  async holdfast() {
    const { Holdfast } = await import("holdfast");
    const { redisStore } = await import("holdfast/redis");
    const locks = new Holdfast(redisStore({ client }));
    await (await locks.mutex(LOCK).acquire()).release();
    await locks.close();
  },
  async "raw SET NX PX + DEL"() {
    if ((await client.set(LOCK, "one", "PX", TTL_MS, "NX")) !== "OK") throw new Error("taken");
    await client.del(LOCK);
  },
  async "redlock 4"() {
    const { default: Redlock } = await import("redlock4");
    const held = await new Redlock([client], {}).lock(LOCK, TTL_MS);
    await held.unlock();
  },
  async "redlock 5 beta"() {
    const { default: Redlock } = await import("redlock5");
    await (await new Redlock([client], {}).acquire([LOCK], TTL_MS)).release();
  },
  async "redis-semaphore"() {
    const { Mutex } = await import("redis-semaphore");
    const mutex = new Mutex(client as never, LOCK, { lockTimeout: TTL_MS });
    await mutex.acquire();
    await mutex.release();
  },
  async "redlock-universal"() {
    const { createLock, IoredisAdapter } = await import("redlock-universal");
    const adapter = new IoredisAdapter(client as never);
    const one = createLock({ adapter, key: LOCK, ttl: TTL_MS });
    await one.release(await one.acquire());
  },
};

const pair = pairs[name];
if (!pair) throw new Error(`no candidate ${name}`);
await pair();
client.disconnect();
process.exit();
