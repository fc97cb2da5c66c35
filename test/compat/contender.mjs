// A process that contends for a lock, by a package or by its replacement, until a message ends it.
// While it believes that it holds, it writes the number of its grant and the time of a clock that
// all processes of the machine share. The time is read before the belief is. The file outlives a
// kill.
import { openSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";

const [library = "", side = "", ports = "", file = "", ttl = "1000", limit = "1"] =
  process.argv.slice(2);
const ttlMs = Number(ttl);
const require = createRequire(import.meta.url);
const beliefs = openSync(file, "a");
const clients = ports.split(",").map((port) => new Redis(Number(port)));
const STEPS = 4;
const retries = { retryCount: 200, retryDelay: 20, retryJitter: 10 };
let isEnding = false;
process.on("message", () => {
  isEnding = true;
});

// The old redis-semaphore does not tell until when a lock can be relied on: the time counts from
// the sending of the request that took it.
let sentMs = 0;
for (const client of clients) {
  for (const command of ["set", "eval", "evalsha"]) {
    const send = client[command].bind(client);
    client[command] = (...args) => {
      sentMs = performance.now();
      return send(...args);
    };
  }
}

/** Each gives a lock, with its belief and its end; null when it gave up. */
const libraries = {
  redlock: {
    old: async () => redlock((await import("redlock")).default),
    new: async () => redlock((await import("../../dist/compat/redlock/index.js")).default),
  },
  redlock4: {
    old: async () => redlock4(require("redlock4")),
    new: async () => redlock4((await import("../../dist/compat/redlock4/index.js")).default),
  },
  mutex: {
    old: async () => old(new (require("redis-semaphore").Mutex)(clients[0], "rolling", options)),
    new: async () => held(new (await semaphores()).Mutex(clients[0], "rolling", options)),
  },
  semaphore: {
    old: async () =>
      old(new (require("redis-semaphore").Semaphore)(clients[0], "rolling", +limit, options)),
    new: async () =>
      held(new (await semaphores()).Semaphore(clients[0], "rolling", +limit, options)),
  },
};
const options = { lockTimeout: ttlMs, acquireTimeout: 20_000, onLockLost: () => {} };
const semaphores = () => import("../../dist/compat/redis-semaphore/index.js");

function redlock(Redlock) {
  const instance = new Redlock(clients, retries);
  return async () => {
    const lock = await instance.acquire(["rolling", "rolling:2"], ttlMs);
    return { isHeld: () => lock.expiration > Date.now(), end: () => lock.release() };
  };
}

function redlock4(Redlock) {
  const instance = new Redlock(clients, retries);
  return async () => {
    const lock = await instance.lock("rolling", ttlMs);
    return { isHeld: () => lock.expiration > Date.now(), end: () => lock.unlock() };
  };
}

function held(lock) {
  return async () => {
    await lock.acquire();
    return { isHeld: () => lock.isAcquired, end: () => lock.release() };
  };
}

function old(lock) {
  return async () => {
    await lock.acquire();
    const untilMs = sentMs + ttlMs - 20;
    return { isHeld: () => performance.now() < untilMs, end: () => lock.release() };
  };
}

const acquire = await libraries[library][side]();
process.send?.("ready");
for (let grant = 1; !isEnding; grant += 1) {
  const lock = await acquire().catch(() => null);
  if (!lock) continue;
  for (let step = 0; step < STEPS; step += 1) {
    const nowUs = process.hrtime.bigint() / 1000n;
    if (lock.isHeld()) writeSync(beliefs, `${grant} ${nowUs}\n`);
    await sleep(1);
  }
  // A lock that ended meanwhile cannot be released.
  await lock.end().catch(() => {});
}
for (const client of clients) client.disconnect();
process.disconnect?.();
