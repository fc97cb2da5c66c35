/** Faults of the servers that keep the lock. */
import { setTimeout as pause } from "node:timers/promises";
import type { FaultKind } from "../history.js";
import { nowMs } from "../lateness.js";
import type { Subject } from "../subjects/subject.js";
import { type Fault, ONE_TTL, type Scene, takes, WAIT } from "./fault.js";

const JUMP_MS = 60_000;
/** A replica that connects again takes a second and more to acknowledge a write. */
const STRETCH = 3;
/** A fault takes this part of the ttl at most: later, the leases of A are over anyway. */
const MAX_STRIKE = 0.5;
/** B reaches the servers before A, by this part of the ttl at most: leases of A live through it. */
const HEAD_START = 0.3;
/** A holder knows by its own deadline, one ttl after its last renewal; the rest is for the lab. */
const KNOWS = 1.2;

interface Strike {
  readonly what: FaultKind;
  /** The flag of the picture. */
  readonly text: string;
  strike(): Promise<void>;
  /** The fault strikes as soon as this resolves. Default: when A works. */
  readonly atOnce?: Promise<unknown>;
  /** Nothing hinders A before the fault strikes: A works. */
  readonly isHeld?: true;
}

/**
 * The fault strikes as soon as A works, and B reaches the servers before A does: any other order
 * gives A more time to find out. B asks until it works, and works on until A has had the lock,
 * which A may still ask for if the fault struck early, and has found out.
 */
async function strikeWhileHeld(
  scene: Scene,
  { what, text, strike, atOnce = new Promise(() => {}), isHeld }: Strike,
): Promise<void> {
  const { a, b, store, ttlMs, happens, late } = scene;
  if (isHeld) await takes(scene);
  else {
    await a.asks();
    await Promise.race([a.worksWithin(ttlMs / 2), atOnce]);
  }
  const isBehind = a.isBelieving;
  if (isBehind) {
    a.happens("cut", "requests kept back");
    store.links(a.lane).stallRequests();
  }
  happens(what, text);
  const struckMs = nowMs();
  await strike();
  if (nowMs() - struckMs > MAX_STRIKE * ttlMs) late();
  const served = b.insists(2 * ttlMs);
  await Promise.race([served, pause(HEAD_START * ttlMs)]);
  if (isBehind) {
    a.happens("healed", "requests arrive");
    store.links(a.lane).unstallRequests();
  }
  if (!(await served)) return;
  if (a.isAsking) await a.worksWithin(ttlMs);
  await a.disbelievesWithin(KNOWS * ttlMs);
}

export const failover: Fault = {
  id: "failover",
  title: "the master dies before it replicates",
  needsServer: true,
  needsReplicas: true,
  stretch: STRETCH,
  patience: WAIT,
  run: (scene) => {
    scene.store.cutReplicas("all");
    return strikeWhileHeld(scene, {
      what: "failed over",
      text: scene.store.succession,
      strike: () => scene.store.failOver("first"),
    });
  },
};

const withoutWait = ({ place }: Subject): string | null =>
  place === "redis" ? null : "it has no replicas to wait for";

export const waitElsewhere: Fault = {
  id: "wait-elsewhere",
  title: "the master dies before WAIT, and the client repeats WAIT at the new one",
  needsServer: true,
  needsReplicas: true,
  stretch: STRETCH,
  patience: WAIT,
  exempts: withoutWait,
  run: (scene) => {
    const { a, store } = scene;
    store.cutReplicas("all");
    return strikeWhileHeld(scene, {
      what: "failed over",
      text: store.succession,
      strike: () => store.failOver("first"),
      atOnce: store
        .links(a.lane)
        .cutAtWait()
        .then(() => a.happens("cut", "cut off before WAIT")),
    });
  },
};

export const otherReplica: Fault = {
  id: "other-replica",
  title: "a replica takes over that had not received the lock",
  needsServer: true,
  needsReplicas: true,
  stretch: STRETCH,
  patience: WAIT,
  exempts: withoutWait,
  run: (scene) => {
    scene.store.cutReplicas("second");
    return strikeWhileHeld(scene, {
      what: "failed over",
      text: "master dies, the other replica takes over",
      strike: () => scene.store.failOver("second"),
    });
  },
};

export const restartsEmpty: Fault = {
  id: "restarts-empty",
  title: "a server restarts without its data, or a file is deleted",
  empties: true,
  stretch: STRETCH,
  patience: ONE_TTL,
  run: (scene) => {
    scene.store.bareMajority(scene.a.lane);
    return strikeWhileHeld(scene, {
      what: "restarted empty",
      text: scene.store.folder === "" ? "server restarts empty" : "files deleted",
      strike: () => scene.store.restartEmpty(),
      isHeld: true,
    });
  },
};

const withoutClock = ({ place }: Subject): string | null =>
  place === "etcd" || place === "zookeeper" ? "its leases go by a monotonic clock" : null;

export const clockJump: Fault = {
  id: "clock-jump",
  title: "the clock of a server jumps ahead by a minute",
  needsServer: true,
  stretch: STRETCH,
  patience: ONE_TTL,
  exempts: withoutClock,
  run: (scene) => {
    scene.store.bareMajority(scene.a.lane);
    return strikeWhileHeld(scene, {
      what: "clock shifted",
      text: "clock + 60 s",
      strike: () => scene.store.shiftClock(JUMP_MS),
      isHeld: true,
    });
  },
};
