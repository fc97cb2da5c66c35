/** Faults of the process that holds the lock. */
import { setTimeout as pause } from "node:timers/promises";
import { type Fault, LOOK, ONE_TTL, SHOWN, takes, WAIT } from "./fault.js";

export const killedHolder: Fault = {
  id: "killed-holder",
  title: "the holder is killed",
  patience: ONE_TTL,
  async run(scene) {
    const { a, b, ttlMs } = scene;
    await takes(scene);
    await pause(SHOWN * ttlMs);
    await a.isKilled();
    await b.asks();
    await b.worksWithin(WAIT * ttlMs);
  },
};

export const killedInAcquire: Fault = {
  id: "killed-in-acquire",
  title: "the holder is killed after its first command",
  needsServer: true,
  patience: ONE_TTL,
  async run({ a, b, store, ttlMs }) {
    const answered = store.links(a.lane).holdReplies();
    await a.asks();
    await answered;
    await a.isKilled();
    await b.asks();
    await b.worksWithin(WAIT * ttlMs);
  },
};

export const longWork: Fault = {
  id: "long-work",
  title: "the work takes longer than the ttl",
  patience: ONE_TTL,
  async run(scene) {
    const { b, ttlMs } = scene;
    await takes(scene);
    await b.asks();
    if (await b.worksWithin(2.5 * ttlMs)) await pause(LOOK * ttlMs);
  },
};

export const blockedLoop: Fault = {
  id: "blocked-loop",
  title: "the holder's event loop is blocked past the ttl",
  patience: ONE_TTL,
  async run(scene) {
    const { a, b, ttlMs } = scene;
    await takes(scene);
    await pause(SHOWN * ttlMs);
    await a.blocks(2.5 * ttlMs);
    await b.asks();
    await b.worksWithin(WAIT * ttlMs);
    await pause(LOOK * ttlMs);
  },
};

export const stoppedHolder: Fault = {
  id: "stopped-holder",
  title: "the holder is stopped past the ttl",
  patience: ONE_TTL,
  async run(scene) {
    const { a, b, ttlMs } = scene;
    await takes(scene);
    await pause(SHOWN * ttlMs);
    await a.isStopped();
    await b.asks();
    await b.worksWithin(WAIT * ttlMs);
    a.continues();
    await a.disbelievesWithin(LOOK * ttlMs);
  },
};

export const stoppedAfterCheck: Fault = {
  id: "stopped-after-check",
  title: "the holder is stopped between its last check and its write",
  patience: ONE_TTL,
  async run(scene) {
    const { a, b, ttlMs } = scene;
    await takes(scene);
    await pause(SHOWN * ttlMs);
    await a.checks();
    await a.isStopped();
    await b.asks();
    await b.worksWithin(WAIT * ttlMs);
    await b.writes();
    a.continues();
    await a.writes();
  },
};
