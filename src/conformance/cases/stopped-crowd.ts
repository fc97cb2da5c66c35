import type { Behaviour } from "../behaviour.js";
import { needAll, needFifo, needStopping } from "../needs.js";
import { within } from "../patience.js";

const lock = { kind: "mutex", name: "m" } as const;
const strict = { fairness: "strict" } as const;

export const stoppedCrowd: Behaviour = {
  title: "a stopped process with many waiters costs no more time than one with a single one",
  needs: needAll(needFifo, needStopping),
  async run(context) {
    const [locks, child] = [await context.openKnown(), await context.child()];
    const { renewedMs } = context.ttl;
    await child.call("warmUp");
    const held = await locks.mutex("m").acquire();
    const crowd = Array.from({ length: 20 }, () =>
      child.call("acquire", lock, { ttlMs: renewedMs, ...strict }),
    );
    await context.untilWaiting(locks, "m", crowd.length);
    await child.stop();
    const waiting = locks.mutex("m").acquire(strict);
    await context.untilWaiting(locks, "m", crowd.length + 1);
    await held.release();
    // One grant lapses before the store knows better, not twenty.
    const bound = 2.5 * renewedMs;
    await within(bound, "the one behind the crowd is served", waiting);
  },
};
