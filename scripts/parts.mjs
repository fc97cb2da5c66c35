// The parts of the test run that are vitest projects, and the files of each.

/** @type {Record<string, readonly string[]>} */
export const parts = {
  unit: [
    "src/**/*.test.ts",
    "bench/*.test.ts",
    "lab/!(matrix).test.ts",
    "lab/{timeline,pages}/*.test.ts",
    "test/*.test.ts",
  ],
  package: ["test/package/**/*.test.ts"],
  stores: ["test/servers/**/*.test.ts", "test/faults/**/*.test.ts", "test/stores/**/*.test.ts"],
  cli: ["test/cli/**/*.test.ts"],
  browser: ["test/browser/**/*.test.ts"],
  storms: ["test/storms/**/*.test.ts"],
  simulation: ["simulation/**/*.test.ts"],
  lab: ["lab/matrix.test.ts"],
};

/** The order of all parts. */
export const order = [
  "check",
  "unit",
  "package",
  "stores",
  "storms",
  "lab",
  "browser",
  "matrix",
  "cli",
  "simulation",
];

/**
 * Parts that run beside another one, which mostly waits or keeps one core busy. The simulation
 * computes for long: it takes what others leave over.
 *
 * @type {Record<string, { readonly part: string, readonly isLow: boolean }>}
 */
export const companions = {
  check: { part: "unit", isLow: false },
  package: { part: "browser", isLow: false },
  stores: { part: "simulation", isLow: true },
  matrix: { part: "cli", isLow: false },
};

/**
 * Whether tests of a part depend on how soon servers and processes run, by real clocks.
 *
 * @param {string} part
 */
export function isTimed(part) {
  return part !== "simulation";
}

const isFull = Boolean(process.env.HOLDFAST_FULL);

const onRedis = isFull
  ? ["test/servers/", "test/stores/redis", "test/stores/redlock", "test/stores/docs"]
  : [
      "stores/redis.test",
      "redis-replication",
      "redis-failover",
      "redis-differential",
      "redlock-differential",
      "redlock-one-differential",
      "redlock-no-scripts",
      "redlock-plain",
    ];
const onEtcd = isFull
  ? ["test/servers/etcd", "test/stores/etcd"]
  : ["etcd.test", "etcd-faults", "etcd-foreign"];
const onPostgres = [
  "stores/postgres.test",
  "postgres-lost-commits",
  "postgres-differential",
  "postgres-full-queue",
];
// Without those that need pg_basebackup, which these packages lack.
if (isFull) onPostgres.push("postgres-d", "postgres-fence", "postgres-s", "postgres-processes");

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
  ...(isFull && { "etcd-3.6": onEtcd }),
  "etcd-3.7": onEtcd,
  ...(isFull && { "postgres-16": onPostgres }),
  "postgres-18": onPostgres,
  ...(isFull && { "zookeeper-3.9": ["test/servers/zookeeper", "test/stores/zookeeper"] }),
};
