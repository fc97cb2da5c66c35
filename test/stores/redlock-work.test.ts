/** A node is shared: what a release does there must not grow with those who wait. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { waitUntil } from "../servers/wait-until.js";
import { RedlockTrial } from "./redlock-trial.js";

const MANY = 3_000;
let trial: RedlockTrial;
beforeAll(async () => {
  trial = await RedlockTrial.start(3);
});
afterAll(() => trial?.[Symbol.asyncDispose]());

const LEFT = "holdfast::w:l:left";
const DONE = "holdfast::w:o:done";

/** Waiters that came before all others, and whom nobody hears. */
async function addWaiters(key: string): Promise<void> {
  const members = Array.from({ length: MANY }, (_, at) => [at, `holdfast@gone/${at}`]).flat();
  await Promise.all(trial.servers.map((server) => server.ask("ZADD", key, ...members)));
}

async function published(): Promise<number> {
  const stats = await trial.server(0).info("commandstats");
  return Number(/calls=(\d+)/.exec(stats.cmdstat_publish ?? "")?.[1] ?? 0);
}

test("a release that finds nobody drops some, and those who live get the lock", async () => {
  const [{ locks: one }, { locks: two }] = [await trial.open(), await trial.open()];
  const lease = await one.mutex("left").acquire();
  const waiting = two.mutex("left").acquire();
  const isThere = async (): Promise<boolean> => {
    return (await trial.server(0).ask("ZCARD", LEFT)) === 1;
  };
  await waitUntil(isThere, { what: "one waits" });
  await addWaiters(LEFT);
  const before = await published();
  await lease.release();
  expect((await published()) - before).toBeLessThan(300);
  await (await waiting).release();
});

test("a once that is done tells some of those who wait for it", async () => {
  const { locks } = await trial.open();
  const before = await published();
  await locks.once("done", () => addWaiters(DONE), { keepMs: 60_000 });
  expect((await published()) - before).toBeLessThan(600);
});
