import { type RedisCluster, startRedisCluster } from "../../test/servers/redis-cluster.js";
import type { Question } from "../contest.js";
import { measured } from "../costs.js";
import { pairsAtOnce } from "../turns.js";
import { type Candidate, holdfast, raw, toCluster } from "./candidates.js";
import { BenchRedis, connected, countedRedis } from "./server.js";

const MASTERS = 3;
const TASKS = 1_000;
const redis = new BenchRedis();
let nodes: RedisCluster | undefined;

const RAW = "raw, one server";
const RAW_OF_CLUSTER = `raw, Cluster of ${MASTERS}`;

/** Each is connected to the server, or to the Cluster, and compared with the raw commands there. */
const candidates: readonly (Candidate & { readonly floor: string })[] = [
  { ...holdfast("holdfast, one server"), floor: RAW },
  { ...holdfast(`holdfast, Cluster of ${MASTERS}`, { connect: toCluster }), floor: RAW_OF_CLUSTER },
  { ...raw(RAW), floor: RAW },
  { ...raw(RAW_OF_CLUSTER, { connect: toCluster }), floor: RAW_OF_CLUSTER },
];

export const cluster: Question = {
  store: "redis",
  name: "cluster",
  title: "1,000 concurrent tasks on distinct names, in a Cluster and on one server",
  about:
    "Many tasks, a name each, spread over the 64 shards that Holdfast has in a Cluster of three " +
    "masters. Names of one shard travel together, so a Cluster gets more and smaller batches. " +
    "All servers share this machine: the pairs of a second tell nothing of three machines, the " +
    "time of all servers does.",
  unit: "pairs/s",
  better: "higher",
  rounds: 15,
  async contestants(isQuick) {
    const pairsPerTask = isQuick ? 3 : 10;
    const pairs = TASKS * pairsPerTask;
    await redis.start();
    nodes = await startRedisCluster({ masters: MASTERS });
    const masters = nodes.masters.map(({ server }) => server);
    return Promise.all(
      candidates.map(async (candidate) => {
        const { name, floor, plain } = candidate;
        const servers = floor === RAW ? [redis.server] : masters;
        const [{ port } = redis.server] = servers;
        const one = await connected(candidate, port, async (locker) => {
          const { elapsedMs, more } = await measured(countedRedis(servers, plain), pairs, () =>
            pairsAtOnce(locker, name, TASKS, pairsPerTask),
          );
          return { value: (pairs * 1000) / elapsedMs, more };
        });
        return { ...one, floor };
      }),
    );
  },
  goals: () => [],
  async close() {
    await redis.stop();
    await nodes?.[Symbol.asyncDispose]();
    nodes = undefined;
  },
};
