/** The price of one acquire and release of the ladder's program, by what the server has to do. */
import { randomUUID } from "node:crypto";
import {
  closeSync,
  fdatasyncSync,
  mkdtempSync,
  openSync,
  rmSync,
  statfsSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import type { Contestant, Question } from "../../bench/contest.js";
import { type RedisServer, startRedis, startReplication } from "../../test/servers/redis.js";

const TTL_MS = 10_000;
/** Many short rounds in turn: a burst of other work on the machine hits all settings alike. */
const ROUNDS = 101;
const PAIRS = 30;
const COMPARE_AND_DELETE =
  'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0';

/** A pair on servers of its own. */
interface Setting {
  readonly name: string;
  servers(): Promise<readonly RedisServer[]>;
  /** How many replicas must have the lock before it counts. */
  readonly replicas?: number;
}

const alone =
  (...args: readonly string[]) =>
  async () => [await startRedis({ args })];

const withReplica = async (): Promise<readonly RedisServer[]> => {
  const { master, replicas } = await startReplication({ replicas: 1 });
  return [master, ...replicas];
};

/** The log is on a disk of its own folder: servers of the tests keep their data in memory. */
const logged = (policy: string) => async (): Promise<readonly RedisServer[]> => {
  const log = ["--appendonly", "yes", "--appendfsync", policy, "--dir", folderOnDisk()];
  return [await startRedis({ args: log })];
};

const TMPFS = 0x01021994;

/** A sync in a file system that lives in memory costs nothing, and would make the price a lie. */
function folderOnDisk(): string {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-lab-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  if (statfsSync(folder).type === TMPFS) {
    throw new Error(`${folder} is in memory. Set TMPDIR to a folder on a disk.`);
  }
  return folder;
}

const five = (): Promise<readonly RedisServer[]> =>
  Promise.all(Array.from({ length: 5 }, () => startRedis()));

async function contestantOf({ name, servers, replicas }: Setting): Promise<Contestant> {
  const started = await servers();
  // Replicas are no nodes: the program asks their master alone.
  const nodes = replicas === undefined ? started : started.slice(0, 1);
  const clients = nodes.map(({ port }) => new Redis(port));
  return {
    name,
    role: "peer",
    async round() {
      const startMs = performance.now();
      for (let left = PAIRS; left > 0; left -= 1) await pair(clients, replicas ?? 0);
      return { value: ((performance.now() - startMs) * 1000) / PAIRS };
    },
    async close() {
      for (const client of clients) client.disconnect();
      await Promise.all(started.map((server) => server.close()));
    },
  };
}

/** The disk itself: a pair makes two writes, and each of them is synced. */
function syncing(): Contestant {
  const file = openSync(join(folderOnDisk(), "log"), "w");
  return {
    name: "two writes with fdatasync, without Redis",
    role: "floor",
    async round() {
      const startMs = performance.now();
      for (let left = 2 * PAIRS; left > 0; left -= 1) {
        writeSync(file, "a line of the log\n");
        fdatasyncSync(file);
      }
      return { value: ((performance.now() - startMs) * 1000) / PAIRS };
    },
    close: async () => closeSync(file),
  };
}

/** All nodes are asked at the same time, as Redlock does. */
async function pair(clients: readonly Redis[], replicas: number): Promise<void> {
  const value = randomUUID();
  const votes = await Promise.all(
    clients.map(async (client) => {
      const isSet = (await client.set("price", value, "PX", TTL_MS, "NX")) !== null;
      return isSet && (replicas === 0 || (await client.wait(replicas, 1_000)) >= replicas);
    }),
  );
  if (votes.filter((isFor) => isFor).length <= clients.length / 2) throw new Error("not acquired");
  await Promise.all(clients.map((client) => client.eval(COMPARE_AND_DELETE, 1, "price", value)));
}

function question(
  name: string,
  title: string,
  about: string,
  settings: readonly Setting[],
  others: () => readonly Contestant[] = () => [],
): Question {
  return {
    store: "lab",
    name,
    title,
    about,
    unit: "µs/pair",
    better: "lower",
    rounds: ROUNDS,
    contestants: async () => [...(await Promise.all(settings.map(contestantOf))), ...others()],
    goals: () => [],
  };
}

export const durability: Question = question(
  "durability",
  "what it costs that a lock survives a restart of its server",
  "`appendfsync` of one Redis; the lock of rung 3.",
  [
    { name: "no log", servers: alone() },
    { name: "appendfsync no", servers: logged("no") },
    { name: "appendfsync everysec", servers: logged("everysec") },
    { name: "appendfsync always", servers: logged("always") },
  ],
  () => [syncing()],
);

export const replication: Question = question(
  "replication",
  "what it costs that a replica has the lock",
  "One Redis with one replica on the same machine; the lock of rung 3.",
  [
    { name: "without WAIT", servers: withReplica, replicas: 0 },
    { name: "WAIT 1", servers: withReplica, replicas: 1 },
  ],
);

export const nodes: Question = question(
  "nodes",
  "what a majority costs",
  "All nodes are on the same machine and are asked at the same time.",
  [
    { name: "one node", servers: alone() },
    { name: "five nodes", servers: five },
  ],
);
