import { fits } from "../../src/rules/fits.js";
import { apply } from "../../src/rules/ledger.js";
import type { Command, Reply } from "../../src/rules/ledger-command.js";
import { noGhost, serviceOrder, tokenOrder } from "./invariants.js";
import { TICK_MS } from "./ledger-client.js";
import type { LedgerScene } from "./ledger-scene.js";

/** The wall clock stands still, so that only the last token makes tokens rise. */
const WALL_US = 1;

export function storeUs({ tick }: LedgerScene): number {
  return tick * TICK_MS * 1000;
}

/** The ledger executes a command; the checks are made on what it shows before and after. */
export function execute(scene: LedgerScene, command: Command): Reply {
  const { ledger, queue } = scene;
  const before = new Set(ledger.holders().map(({ token }) => token));
  const places = new Map(ledger.waiters().map(({ owner, sinceUs }) => [owner, sinceUs]));
  const reply = apply(ledger, command, { us: storeUs(scene), wallUs: WALL_US }, (push) => {
    scene.net.push({ type: "push", push });
    return true;
  });
  const isWaiting = (id: string): boolean => ledger.waiter(id) !== undefined;
  // An owner that lost its place by silence may be back at the end of the queue.
  const isInPlace = (id: string): boolean => {
    return isWaiting(id) && ledger.waiter(id)?.sinceUs === places.get(id);
  };
  const canBeServed = (id: string): boolean => {
    const waiter = ledger.waiter(id);
    return waiter !== undefined && isInPlace(id) && !ledger.client(waiter.client)?.unresponsive;
  };
  for (const { owner, token } of ledger.holders()) {
    if (before.has(token)) continue;
    scene.wrong ??= tokenOrder(owner, token, scene.highestToken);
    scene.wrong ??= serviceOrder(owner, queue, canBeServed);
    scene.highestToken = Math.max(scene.highestToken, token);
  }
  const kept = queue.filter(isInPlace);
  const newcomers = ledger.waiters().filter(({ owner }) => !kept.includes(owner));
  scene.queue = [...kept, ...newcomers.map(({ owner }) => owner)];
  if (command.type === "release") {
    scene.departed = [...new Set([...scene.departed, command.owner])].sort();
  }
  const isThere = (id: string): boolean => isWaiting(id) || ledger.holder(id) !== undefined;
  scene.wrong ??= noGhost(scene.departed, isThere);
  const head = ledger.head();
  if (head && fits(ledger.occupancy(), head)) {
    scene.wrong ??= `Wake-up: ${head.owner} waits though the lock is free.`;
  }
  return reply;
}
