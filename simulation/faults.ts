import { Chance } from "./chance.js";
import type { Fault, Plan } from "./plan.js";
import type { Program } from "./program.js";
import type { StoreSide } from "./store-server.js";
import type { World } from "./world.js";

export const NO_FAULTS: Readonly<Record<Fault, number>> = {
  pause: 0,
  suspend: 0,
  crash: 0,
  reset: 0,
  cut: 0,
  stall: 0,
  step: 0,
  restart: 0,
  forget: 0,
  wall: 0,
  save: 0,
  ambush: 0,
};

/** Everything that a fault can hit. */
export interface Victims {
  readonly world: World;
  readonly server: StoreSide;
  programs(): readonly Program[];
  /** Starts another program in the place of one that crashed. */
  replace(program: Program): void;
}

/**
 * Steps of the store's clock: far longer than any message takes, so that no step looks like a slow
 * message.
 */
const STEPS_MS = [5_000, 60_000, -5_000, -60_000, 20_000];

/** Injects one fault after the other until `untilMs`. */
export function injectFaults(plan: Plan, victims: Victims, untilMs: number): void {
  if (Object.values(plan.faults).every((weight) => weight === 0)) return;
  const { world } = victims;
  const chance = new Chance(plan.seed, "faults");
  const next = (): void => {
    const atMs = world.nowMs + plan.faultEveryMs * chance.between(0.2, 1.8);
    if (atMs >= untilMs) return;
    world.schedule(atMs, null, () => {
      inject(chance.weigh(plan.faults), plan, victims, chance);
      next();
    });
  };
  next();
}

function inject(fault: Fault, plan: Plan, victims: Victims, chance: Chance): void {
  const { server } = victims;
  const program = chance.pick(victims.programs());
  if (!program?.process.isAlive) return;
  const ttlMs = plan.ttlsMs[0] as number;
  const freezeMs = ttlMs * chance.between(...plan.freezeParts);
  switch (fault) {
    case "pause":
      return program.process.pause(freezeMs);
    case "suspend":
      return program.process.suspend(Math.max(200, freezeMs));
    case "crash":
      return crash(program, victims, ttlMs, chance);
    case "reset":
      return chance.isLucky(0.5) ? program.link.reset() : program.link.resetNext();
    case "cut":
      return program.link.cut(chance.spread(10, 2 * ttlMs));
    case "stall":
      return server.stall(chance.spread(5, 1.5 * ttlMs));
    case "step":
      return server.step(chance.pick(STEPS_MS));
    case "wall":
      return program.process.setWall(chance.pick(plan.wallsMs));
    case "save":
      return server.save();
    case "ambush":
      return server.ambush?.(victims.world, chance);
    case "restart":
    case "forget":
      return server.restart(chance.spread(1, ttlMs), fault === "forget");
  }
}

/** A process that blocks is ahead of world time: it crashes when world time has caught up. */
function crash(program: Program, victims: Victims, ttlMs: number, chance: Chance): void {
  const { world } = victims;
  const noticedMs = chance.isLucky(0.5) ? chance.spread(1, ttlMs) : null;
  const restartMs = chance.spread(1, 2 * ttlMs);
  world.schedule(program.process.blockedUntilMs, null, () => {
    if (!program.process.isAlive) return;
    if (program.process.blockedUntilMs > world.nowMs) return crash(program, victims, ttlMs, chance);
    program.process.crash();
    program.link.abandon(noticedMs);
    world.schedule(world.nowMs + restartMs, null, () => victims.replace(program));
  });
}
