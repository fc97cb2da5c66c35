/**
 * Faults in an ensemble, each with several holders: none believes longer than its znode lives.
 *
 * `HOLDFAST_TRIALS` sets the number of trials of each fault. Every trial is printed with its least
 * margin; one that shows nothing, with the reason and the longest delay of the event loop.
 */

import assert from "node:assert/strict";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, test } from "vitest";
import { isFull } from "../fixtures/depth.js";
import { randomOf } from "../fixtures/seed.js";
import { waitUntil } from "../servers/wait-until.js";
import {
  startZookeeperEnsemble,
  type ZookeeperEnsemble,
  type ZookeeperServer,
  zookeeperMissing,
} from "../servers/zookeeper.js";
import { Holder, VoidTrial, Witness } from "./belief.js";
import { Znodes } from "./harness.js";

const random = randomOf("zookeeper faults");
const TICK_MS = 1_000;
const TTL_MS = 2_000;
const HOLDERS = 6;
const MAX_VOIDS = 12;
const LOCAL_SESSIONS = ["localSessionsEnabled=true", "localSessionsUpgradingEnabled=true"];
const TRIALS = Number(process.env.HOLDFAST_TRIALS ?? (isFull ? 50 : 1));
const ELECTION_MS = 8_000;
const GONE_MS = 60_000;

/** The servers of one trial, and the holders, which are connected to `at`. */
interface Scene {
  readonly ensemble: ZookeeperEnsemble;
  readonly leader: ZookeeperServer;
  /** The server of the holders: a follower, unless the fault is one of the leader. */
  readonly at: ZookeeperServer;
  readonly other: ZookeeperServer;
  readonly holders: readonly Holder[];
  crash(): void;
}

/** From the end of a belief to the end of its znode, which the client itself may have ended. */
interface Margin {
  readonly ms: number;
  readonly byClient: boolean;
}

interface Fault {
  readonly title: string;
  /** The holders are connected to the leader. */
  readonly atLeader?: boolean;
  /** A short test run has this fault too. */
  readonly isBrief?: boolean;
  /** The servers that may tell old news, and do not witness. */
  blind?(scene: Scene): readonly ZookeeperServer[];
  strike(scene: Scene): Promise<void>;
}

const faults: readonly Fault[] = [
  {
    title: "the holders are cut off from their server",
    strike: async ({ crash }) => crash(),
  },
  {
    title: "a follower is cut off from its leader",
    isBrief: true,
    blind: ({ at }) => [at],
    strike: async ({ ensemble, at, leader }) => ensemble.link(at, leader).blackhole("both"),
  },
  {
    title: "a follower is killed right after a proof",
    blind: ({ at }) => [at],
    async strike({ at, holders }) {
      await Promise.race(holders.map((holder) => holder.proven()));
      await at.kill();
    },
  },
  {
    title: "the leader is stopped for a while, and a follower is killed right after the next proof",
    blind: ({ at }) => [at],
    async strike({ at, leader, holders }) {
      await leader.pause();
      await sleep(between(700, 1_700));
      leader.resume();
      const proofs = holders.map((holder) => holder.proven());
      await Promise.race([...proofs, sleep(3_000)]);
      await at.kill();
    },
  },
  {
    title: "the leader of a follower's holders is stopped for a long while",
    async strike({ leader, crash }) {
      await leader.pause();
      await sleep(between(2_500, 7_500));
      leader.resume();
      await sleep(1);
      crash();
    },
  },
  {
    title: "the leader with its own holders is stopped for a long while",
    atLeader: true,
    blind: ({ at }) => [at],
    async strike({ leader, crash }) {
      await leader.pause();
      await sleep(between(2_500, 7_500));
      leader.resume();
      await sleep(1);
      crash();
    },
  },
  {
    title: "the leader is killed",
    blind: ({ leader }) => [leader],
    async strike({ leader, crash }) {
      await leader.kill();
      await sleep(between(50, 3_500));
      crash();
    },
  },
  {
    title: "a leader that was deposed goes on answering",
    atLeader: true,
    isBrief: true,
    blind: ({ at }) => [at],
    async strike({ ensemble, leader }) {
      for (const follower of ensemble.members.filter((one) => one !== leader)) {
        const link = ensemble.link(follower, leader);
        link.blackhole("both");
        link.pauseAccept();
      }
    },
  },
  {
    title: "answers to a follower are late, and then its requests are lost",
    isBrief: true,
    blind: ({ at }) => [at],
    async strike({ ensemble, at, leader }) {
      const link = ensemble.link(at, leader);
      link.stall("replies");
      await sleep(between(900, 1_700));
      link.blackhole("requests");
      for (const { replies } of link.links) replies.unstall();
    },
  },
  {
    title: "holders move to another follower, which is killed right after the proof",
    blind: ({ other }) => [other],
    async strike({ holders, other }) {
      await Promise.all(holders.map((holder) => holder.move()));
      const proofs = holders.map((holder) => holder.proven());
      await Promise.race([Promise.all(proofs), sleep(TTL_MS)]);
      await other.kill();
    },
  },
];

async function untilInTouch({ port }: ZookeeperServer, timeoutMs: number): Promise<void> {
  await using znodes = new Znodes([port]);
  await waitUntil(() => znodes.isInTouch(), { what: "a server is in touch", timeoutMs });
}

async function closeHolders(holders: readonly Holder[]): Promise<void> {
  await Promise.all(holders.map((holder) => holder.close()));
}

/** The least margin of the znodes that the server ended, and of those that their client ended. */
function told(margins: readonly Margin[]): string {
  const least = (byClient: boolean): string => {
    const chosen = margins.filter((margin) => margin.byClient === byClient);
    if (chosen.length === 0) return "none";
    return `${Math.round(Math.min(...chosen.map(({ ms }) => ms)))} ms of ${chosen.length}`;
  };
  return `margin ${least(false)} (ended by their client: ${least(true)})`;
}

function between(least: number, most: number): number {
  return least + random() * (most - least);
}

/** `observers`: all holders are connected to an observer, whose sessions are its own at first. */
function judge(title: string, observers: 0 | 1, struck: readonly Fault[]): void {
  describe.skipIf(zookeeperMissing() !== null || struck.length === 0)(title, () => {
    let ensemble: ZookeeperEnsemble;
    let trials = 0;
    beforeAll(async () => {
      const lines = observers ? LOCAL_SESSIONS : [];
      ensemble = await startZookeeperEnsemble(3 + observers, { tickMs: TICK_MS, observers, lines });
    }, 60_000);
    afterAll(() => ensemble[Symbol.asyncDispose]());

    /** All servers serve again, whatever the last trial did to them. */
    async function repaired(): Promise<void> {
      await ensemble.heal();
      for (const member of ensemble.members) if (!member.running) await member.start();
      for (const member of ensemble.members) {
        // A server may stay outside of the ensemble for good, after the leader was stopped.
        await untilInTouch(member, 20_000).catch(async () => {
          await member.kill();
          await member.start();
          await untilInTouch(member, 60_000);
        });
      }
    }

    async function stage({ atLeader = false }: Fault): Promise<Scene> {
      await repaired();
      const leader = await ensemble.leader();
      const followers = ensemble.members.filter((one) => one !== leader);
      if (observers || random() < 0.5) followers.reverse();
      const [at = leader, other = leader] = atLeader ? [leader, followers[0]] : followers;
      trials += 1;
      const holders: Holder[] = [];
      try {
        for (let index = 0; index < HOLDERS; index += 1) {
          const options = { ttlMs: TTL_MS, direct: index % 2 === 1, isFirst: index % 3 === 0 };
          holders.push(await Holder.open([at, other], `trial${trials}-${index}`, options));
          await sleep(random() * 100);
        }
      } catch (error) {
        await closeHolders(holders);
        throw error;
      }
      const crash = (): void => {
        for (const holder of holders) holder.crash();
      };
      return { ensemble, leader, at, other, holders, crash };
    }

    /** The times from the end of a belief to the end of its znode. */
    async function trial(fault: Fault): Promise<readonly Margin[]> {
      const scene = await stage(fault);
      const { holders } = scene;
      const blind = fault.blind?.(scene) ?? [];
      const seeing = ensemble.members.filter((one) => !blind.includes(one));
      await using witness = new Witness(seeing, holders);
      try {
        await witness.allSeen(holders);
        await sleep(between(700, 1_500));
        for (const holder of holders) holder.assertHeld();
        await fault.strike(scene);
        await sleep(TTL_MS);
        scene.crash();
        // Some elections do not end before the network and the servers are whole again.
        await witness.allGone(holders, ELECTION_MS).catch(() => repaired());
        await witness.allGone(holders, GONE_MS);
        return holders.map((holder) => {
          const goneMs = witness.goneMs(holder) ?? 0;
          return { ms: goneMs - holder.endMs, byClient: holder.hasWithdrawn(goneMs) };
        });
      } finally {
        await ensemble.heal();
        await closeHolders(holders);
      }
    }

    for (const fault of struck) {
      test(`${fault.title}: no belief outlives its znode`, {
        timeout: (TRIALS + MAX_VOIDS) * 90_000,
      }, async () => {
        const delays = monitorEventLoopDelay({ resolution: 5 });
        delays.enable();
        const print = (line: string): void => {
          const longestMs = Math.round(delays.max / 1e6);
          if (TRIALS > 1) console.log(`${title}: ${fault.title}: ${line} (loop ${longestMs} ms)`);
        };
        const margins: Margin[] = [];
        for (let voids = 0, done = 0; done < TRIALS; ) {
          const startedMs = performance.now();
          delays.reset();
          const shown = await trial(fault).catch((error: unknown) => {
            if (error instanceof VoidTrial) return error;
            throw error;
          });
          const tookMs = Math.round(performance.now() - startedMs);
          if (shown instanceof VoidTrial) {
            voids += 1;
            print(`void after ${tookMs} ms: ${shown.message}`);
            assert.ok(voids <= TRIALS + MAX_VOIDS, "the holders hold until the fault");
            continue;
          }
          done += 1;
          margins.push(...shown);
          print(`trial ${done} in ${tookMs} ms: ${told(shown)}; in all ${told(margins)}`);
          const leastMs = Math.min(...shown.map(({ ms }) => ms));
          assert.ok(leastMs > 0, `a belief was ${Math.round(-leastMs)} ms too long`);
        }
        delays.disable();
      });
    }
  });
}

judge(
  "belief and the life of znodes",
  0,
  faults.filter(({ isBrief }) => isBrief || TRIALS > 1),
);
judge("belief at an observer", 1, TRIALS > 1 ? faults.filter(({ atLeader }) => !atLeader) : []);
