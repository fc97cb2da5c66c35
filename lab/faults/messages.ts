/** Faults of the network between a process and the store. */

import { setTimeout as pause } from "node:timers/promises";
import { AT_ONCE, type Fault, LESS_THAN_TTL, LOOK, ONE_TTL, SHOWN, takes, WAIT } from "./fault.js";

export const lateRelease: Fault = {
  id: "late-release",
  title: "the release arrives after the ttl",
  needsServer: true,
  processes: 3,
  // The next holder must still be within its ttl when the release arrives and C asks.
  stretch: 2,
  patience: ONE_TTL,
  async run(scene) {
    const { a, b, c, store, ttlMs } = scene;
    await takes(scene);
    await pause(SHOWN * ttlMs);
    store.links(a.lane).stallRequests();
    a.happens("cut", "requests kept back");
    await a.startsRelease();
    await b.asks();
    await b.worksWithin(WAIT * ttlMs);
    a.happens("late release", "release arrives");
    await store.links(a.lane).heal();
    await a.released();
    await c.asks();
    if (await c.worksWithin(LOOK * ttlMs)) await pause(LOOK * ttlMs);
  },
};

export const lostReply: Fault = {
  id: "lost-reply",
  title: "the reply to the acquire is lost",
  needsServer: true,
  patience: LESS_THAN_TTL,
  async run({ a, store, ttlMs }) {
    const lost = store.links(a.lane).loseReplies();
    await a.asks();
    await lost;
    a.happens("reply lost", "reply lost");
    await a.worksWithin(WAIT * ttlMs);
  },
};

export const lateCopy: Fault = {
  id: "late-copy",
  title: "a late copy of the acquire arrives after the release",
  needsServer: true,
  patience: AT_ONCE,
  async run({ a, b, store, ttlMs }) {
    const held = store.links(a.lane).holdRequests();
    await a.asks();
    await Promise.all(held.map(({ caught }) => caught));
    a.happens("request held", "acquire kept back, connection broken");
    await a.worksWithin(WAIT * ttlMs);
    await pause(SHOWN * ttlMs);
    await a.finishes();
    a.happens("late copy", "the late copy arrives");
    // A server may have ended that connection: then it refuses the copy without an answer.
    await Promise.all(held.map((one) => one.deliver().catch(() => undefined)));
    await b.asks();
    await b.worksWithin(WAIT * ttlMs);
  },
};

export const slowRenewals: Fault = {
  id: "slow-renewals",
  title: "requests are slow, and the work takes longer than the ttl",
  needsServer: true,
  // Renewals of Redlock have a tenth of the ttl for an answer that is delayed on purpose.
  latest: 0.05,
  patience: ONE_TTL,
  async run(scene) {
    const { a, b, store, ttlMs } = scene;
    await takes(scene);
    const delayMs = Math.round(ttlMs / 25);
    store.links(a.lane).delayRequests(delayMs);
    a.happens("delayed", `requests take ${delayMs} ms`);
    await b.asks();
    if (await b.worksWithin(2.5 * ttlMs)) await pause(LOOK * ttlMs);
  },
};
