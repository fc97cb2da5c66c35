// The contents of a test run: the vitest projects, and the jobs of each depth.

/** The stores with a folder below test. */
export const stores = [
  "memory",
  "file",
  "redis",
  "redlock",
  "postgres",
  "etcd",
  "zookeeper",
  "thread",
  "compat",
];

/**
 * The vitest projects and the files of each.
 *
 * @type {Record<string, readonly string[]>}
 */
export const projects = {
  unit: [
    "src/**/*.test.ts",
    "bench/*.test.ts",
    "lab/!(matrix).test.ts",
    "lab/{timeline,pages}/*.test.ts",
    "test/*.test.ts",
    "scripts/*.test.mjs",
  ],
  package: ["test/package/**/*.test.ts"],
  stores: ["servers", "faults", "stores", ...stores].map((folder) => `test/${folder}/**/*.test.ts`),
  cli: ["test/cli/**/*.test.ts"],
  browser: ["test/browser/**/*.test.ts"],
  storms: ["test/storms/**/*.test.ts"],
  simulation: ["simulation/**/*.test.ts"],
  lab: ["lab/matrix.test.ts"],
};

/** @typedef {"quick" | "all" | "full"} Depth */
/**
 * One run of vitest, or of the checks. Jobs of one lane run one after the other, the lanes side by
 * side. Tests with servers and processes mostly wait, and depend on timers: they go first. Jobs
 * that compute take what is left.
 *
 * @typedef {object} Job
 * @property {string} part the word that selects it
 * @property {string} project a vitest project; "check" for the checks
 * @property {"waits" | "computes"} lane
 * @property {readonly string[]} [files] parts of the names of those to run; default: all
 * @property {string} [server] a newer server to run on
 */

/**
 * The files of the project `stores` that `npm test` runs: the kit with one client on each store,
 * and the faults that once found a bug.
 */
const quickStores = [
  ...stores.filter((name) => name !== "compat").map((name) => `test/${name}/conformance`),
  ...of("redis", [
    "differential",
    "replication-failover",
    "processes",
    "memory-loss",
    "clock",
    "replies",
    "revoked-holder",
    "foreign",
    "resharding",
    "short-paths",
    "token-attack",
    "pushes",
    "register",
  ]),
  ...of("redlock", ["faults", "foreign", "differential", "leases", "one-differential", "lean"]),
  ...of("postgres", [
    "faults",
    "dead-waiters",
    "lost-commits",
    "synchronous",
    "short-paths",
    "fence.",
  ]),
  ...of("etcd", ["faults.", "version"]),
  ...of("zookeeper", ["sessions", "lost-replies", "batch", "lagging"]),
  ...of("file", ["faults", "places"]),
  ...of("compat", ["redlock4"]),
  "test/stores/fence",
  "test/faults/",
];

/**
 * @param {string} store
 * @param {readonly string[]} files
 */
function of(store, files) {
  return files.map((file) => `test/${store}/${file}`);
}

/**
 * The files of the project `stores` that run on newer servers than the installed ones.
 *
 * @param {boolean} isFull
 * @returns {Record<string, readonly string[]>}
 */
function matrix(isFull) {
  const onRedis = isFull
    ? ["test/servers/", "test/redis/", "test/redlock/", "test/stores/docs"]
    : [
        "redis/conformance",
        "redis/replication.",
        "redis/failover",
        "redis/differential",
        "redis/plain-keys",
        "redlock/differential",
        "redlock/one-differential",
        "redlock/plain",
      ];
  const onEtcd = isFull
    ? ["test/servers/etcd", "test/etcd/"]
    : ["etcd/conformance", "etcd/faults", "etcd/foreign"];
  const onPostgres = [
    "postgres/conformance",
    "postgres/lost-commits",
    "postgres/differential",
    "postgres/full-queue",
  ];
  // Without those that need pg_basebackup, which these packages lack.
  if (isFull) {
    onPostgres.push("postgres/d", "postgres/fence", "postgres/s", "postgres/processes");
  }
  return {
    "redis-8": onRedis,
    ...(isFull && { "valkey-8": onRedis }),
    "valkey-9": onRedis,
    "etcd-3.5": onEtcd,
    ...(isFull && { "etcd-3.6": onEtcd }),
    "etcd-3.7": onEtcd,
    ...(isFull && { "postgres-16": onPostgres }),
    "postgres-18": onPostgres,
    ...(isFull && { "zookeeper-3.9": ["test/servers/zookeeper", "test/zookeeper/"] }),
  };
}

const quickCommand = ["run", "usage", "signals", "once-elect"].map((file) => `test/cli/${file}`);

/** @type {readonly Job[]} */
const quick = [
  { part: "check", project: "check", lane: "computes" },
  { part: "unit", project: "unit", lane: "computes" },
  { part: "simulation", project: "simulation", lane: "computes", files: ["simulation/seeds"] },
  { part: "stores", project: "stores", lane: "waits", files: quickStores },
  { part: "cli", project: "cli", lane: "waits", files: quickCommand },
  { part: "browser", project: "browser", lane: "waits", files: ["test/browser/dashboard"] },
  { part: "package", project: "package", lane: "waits", files: ["test/package/consumer"] },
];

/** @type {readonly Job[]} */
const all = [
  { part: "check", project: "check", lane: "computes" },
  { part: "unit", project: "unit", lane: "computes" },
  { part: "simulation", project: "simulation", lane: "computes" },
  { part: "stores", project: "stores", lane: "waits" },
  { part: "storms", project: "storms", lane: "waits" },
  { part: "lab", project: "lab", lane: "waits" },
  { part: "cli", project: "cli", lane: "waits" },
  { part: "browser", project: "browser", lane: "waits" },
  { part: "package", project: "package", lane: "waits" },
];

/** The words that select a part of a run. */
export const words = [...new Set([...all.map(({ part }) => part), "matrix", ...stores])];

/**
 * The jobs of a run.
 *
 * @param {Depth} depth
 * @param {readonly string[]} chosen words; none for everything
 * @returns {Job[]}
 */
export function jobsOf(depth, chosen) {
  const newer = Object.entries(matrix(depth === "full")).map(([server, files]) => {
    return /** @type {Job} */ ({ part: "matrix", project: "stores", lane: "waits", files, server });
  });
  const jobs = depth === "quick" ? quick : [...all, ...newer];
  if (chosen.length === 0) return [...jobs];
  // A part that is named runs as a whole, or as far as the depth goes.
  const parts = [...jobs, ...all, ...newer].filter(({ part }) => chosen.includes(part));
  const first = parts.filter((job, at) => {
    return parts.findIndex(({ part, server }) => part === job.part && server === job.server) === at;
  });
  return [...first, ...chosen.filter((word) => stores.includes(word)).flatMap(storeJobs)];
}

/**
 * Everything about one store on the installed server.
 *
 * @param {string} store
 * @returns {Job[]}
 */
function storeJobs(store) {
  const units = [`src/stores/${store}`, `src/${store}/`];
  return [
    { part: store, project: "unit", lane: "computes", files: units },
    {
      part: store,
      project: "stores",
      lane: "waits",
      files: [`test/${store}/`, `test/servers/${store}`],
    },
  ];
}
