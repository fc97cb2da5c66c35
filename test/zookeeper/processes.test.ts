/** Contenders and servers of an ensemble are killed and stopped at any moment. */

import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isFull } from "../fixtures/depth.js";
import { waitUntil } from "../servers/wait-until.js";
import {
  startZookeeperEnsemble,
  type ZookeeperEnsemble,
  type ZookeeperServer,
  zookeeperMissing,
} from "../servers/zookeeper.js";
import { Contenders } from "../stores/contenders.js";
import { ZookeeperTrial } from "./trial.js";

const TTL_MS = 2_000;
const ROUNDS = isFull ? 12 : 1;

describe.skipIf(zookeeperMissing() !== null)("a storm", { timeout: 10 * 60_000 }, () => {
  let ensemble: ZookeeperEnsemble;
  beforeAll(async () => {
    ensemble = await startZookeeperEnsemble(3, { tickMs: 200 });
  });
  afterAll(() => ensemble?.[Symbol.asyncDispose]());

  async function storm(name: string, fault: () => Promise<unknown>): Promise<void> {
    await using contenders = new Contenders(`zookeeper://${ensemble.servers}/locks`, name);
    let victim = await contenders.start(2, TTL_MS);
    const [second] = [await contenders.start(2, TTL_MS), await contenders.start(2, TTL_MS)];
    for (let round = 0; round < ROUNDS; round += 1) {
      await contenders.untilMoreTurns();
      await fault();
      await contenders.untilMoreTurns();
      await victim.kill();
      victim = await contenders.start(2, TTL_MS);
      await second?.pause();
      await contenders.untilMoreTurns();
      // Its session is over when it continues.
      await sleep(TTL_MS);
      second?.resume();
    }
    await contenders.untilMoreTurns();
    await contenders.end();
    contenders.expectOneAtATime();
    const trial = new ZookeeperTrial();
    const locks = await trial.open(`127.0.0.1:${ensemble.members[0]?.port}/locks`);
    const isFree = async (): Promise<boolean> => {
      const { holders, waiters } = await locks.inspect(name);
      return holders.length + waiters.length === 0;
    };
    await waitUntil(isFree, { what: "nothing is left" });
    await trial.close();
  }

  /** A server is away for a while, and the others elect another leader where it led. */
  async function without(server: ZookeeperServer, away: () => Promise<unknown>): Promise<void> {
    await away();
    const others = ensemble.members.filter((member) => member !== server);
    await ensemble.leader(others);
  }

  it("in which leaders are killed", async () => {
    await storm("killed", async () => {
      const leader = await ensemble.leader();
      await without(leader, () => leader.kill());
      await leader.start();
    });
  });

  it("in which leaders are stopped, and continue", async () => {
    await storm("stopped", async () => {
      const leader = await ensemble.leader();
      await without(leader, () => leader.pause());
      leader.resume();
      expect(leader.running).toBe(true);
    });
  });
});
