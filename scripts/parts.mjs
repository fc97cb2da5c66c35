// The parts of the test run that are vitest projects, in their order, and the files of each.

/** @type {Record<string, readonly string[]>} */
export const parts = {
  unit: ["src/**/*.test.ts", "bench/*.test.ts", "test/*.test.ts"],
  package: ["test/package/**/*.test.ts"],
  stores: ["test/servers/**/*.test.ts", "test/faults/**/*.test.ts", "test/stores/**/*.test.ts"],
  cli: ["test/cli/**/*.test.ts"],
  storms: ["test/storms/**/*.test.ts"],
  simulation: ["simulation/**/*.test.ts"],
};

const isFull = Boolean(process.env.HOLDFAST_FULL);

const onRedis = isFull
  ? ["test/servers/", "test/stores/redis", "test/stores/redlock", "test/stores/docs"]
  : [
      "stores/redis.test",
      "redis-replication",
      "redis-failover",
      "redis-differential",
      "redlock-differential",
    ];
const onEtcd = isFull
  ? ["test/servers/etcd", "test/stores/etcd"]
  : ["etcd.test", "etcd-faults", "etcd-foreign"];

/**
 * The part `matrix`: the files of the part `stores` that run on servers newer than the installed
 * ones. The words are parts of file names.
 *
 * @type {Record<string, readonly string[]>}
 */
export const matrix = {
  "redis-8": onRedis,
  ...(isFull && { "valkey-8": onRedis }),
  "valkey-9": onRedis,
  "etcd-3.5": onEtcd,
};
