/** docs/capacity.md: from the measured cost of a lock to machines. */
import { CostBook, type Sizing } from "./cost-book.js";
import type { Result } from "./results.js";
import { figure, markdown } from "./table.js";

const SIZES = [10_000, 1_000_000, 100_000_000];
const TTLS_S = [30, 300];
/** The defaults of the library: `ttlMs`, and how often a waiting process shows that it lives. */
const TTL_S = 30;
const HEARTBEAT_S = Math.min(TTL_S / 6, 10 / 3);
/** The part of a core that locks should use at most, so that bursts find room. */
const MAX_LOAD = 0.5;
/** A namespace of a Redis Cluster has so many shards, each on one server. */
const SHARDS = 64;
const CROWD = 10_000;
/** A key of etcd or a znode, with its history; an assumption, as the page says. */
const ASSUMED_KEY_BYTES = 1_000;

/**
 * The template is bench/capacity.md. In it, `{{name}}` stands for a value that is computed here,
 * and `{{store > question > contestant > column}}` for a measured figure.
 */
export function capacityPage(template: string, results: readonly Result[]): string {
  const book = new CostBook(results);
  const computed = computedValues(book);
  return template.replace(/\{\{(.*?)\}\}/g, (_, name: string) => {
    const value = computed[name];
    if (value !== undefined) return value;
    const [store = "", question = "", contestant = "", column] = name.split(" > ");
    return figure(book.cost(store, question, contestant, column));
  });
}

function computedValues(book: CostBook): Readonly<Record<string, string>> {
  const million = book.sizing(1_000_000, TTL_S);
  const heartbeats = CROWD / HEARTBEAT_S;
  const heartbeatUs = book.cost("redis", "crowd", "holdfast, 1,000 hold, 1,000 wait", "heartbeat");
  return {
    machines: book.machines,
    pairs: markdown(book.pairRows()),
    others: markdown(book.otherRows()),
    "redis sizes": markdown(redisRows(book)),
    "other sizes": markdown(otherStoreRows(book)),
    rates: markdown(rateRows(book)),
    "million cores": rounded(million.cores),
    "million client memory": `${gigabytes(million.clientBytes)} GB`,
    "most load": percent(MAX_LOAD),
    "most leases": rounded((MAX_LOAD / million.cores) * 1e6),
    shards: `${SHARDS}`,
    "redlock factor": figure(book.redlockFactor()),
    "growth by names": figure(book.growth("growth-names")),
    "growth by crowd": figure(book.growth("crowd")),
    "heartbeat period": `${seconds(HEARTBEAT_S)} s`,
    crowd: figure(CROWD),
    "crowd heartbeats": figure(heartbeats),
    "crowd load": percent((heartbeats * heartbeatUs) / 1e6),
  };
}

function redisRows(book: CostBook): readonly string[][] {
  const head = [
    "held locks",
    "`ttlMs`",
    "renewals/s",
    "calls/s",
    "server cores",
    "Redis servers",
    "server memory",
    "memory of all clients",
  ];
  const rows = SIZES.flatMap((leases) => TTLS_S.map((ttlS) => row(book.sizing(leases, ttlS))));
  return [head, ...rows];
}

function row({ leases, ttlS, renewals, calls, cores, ...size }: Sizing): string[] {
  const servers = Math.max(1, Math.ceil(cores / MAX_LOAD));
  return [
    figure(leases),
    `${ttlS} s`,
    figure(renewals),
    figure(calls),
    coresText(cores),
    servers > SHARDS ? `${servers}, in ${Math.ceil(servers / SHARDS)} namespaces` : `${servers}`,
    `${gigabytes(size.serverBytes)} GB`,
    `${gigabytes(size.clientBytes)} GB`,
  ];
}

function rateRows(book: CostBook): readonly string[][] {
  const rate = (store: string, question: string): string => {
    const us = book.cost(store, question, "holdfast", "server CPU µs/pair");
    return rounded((MAX_LOAD * 1e6) / us);
  };
  return [
    ["store", "pairs/s, one after the other", "pairs/s, many at once"],
    ["redis", rate("redis", "uncontended"), rate("redis", "many-names")],
    ["postgres", rate("postgres", "uncontended"), rate("postgres", "many-names")],
    ["etcd", rate("etcd", "uncontended"), ""],
    ["zookeeper", rate("zookeeper", "uncontended"), rate("zookeeper", "many-names")],
    ["redlock, for each core of its five servers", rate("redlock", "uncontended"), ""],
  ];
}

function otherStoreRows(book: CostBook): readonly string[][] {
  const cores = (leases: number, ttlS: number): string => {
    return `${coresText(book.renewalCores("postgres", leases, ttlS))} cores`;
  };
  return [
    ["held locks", ...TTLS_S.map((ttlS) => `postgres, \`ttlMs\` ${ttlS} s`), "etcd, zookeeper"],
    ...SIZES.map((leases) => [
      figure(leases),
      ...TTLS_S.map((ttlS) => cores(leases, ttlS)),
      `${gigabytes(leases * ASSUMED_KEY_BYTES)} GB`,
    ]),
  ];
}

function coresText(cores: number): string {
  return cores < 0.01 ? "below 0.01" : figure(cores);
}

/** To two digits: more would say more than was measured. */
function rounded(value: number): string {
  return Number(value.toPrecision(2)).toLocaleString("en");
}

function percent(part: number): string {
  return `${Math.round(part * 100)} %`;
}

function seconds(value: number): string {
  return value.toFixed(1).replace(/\.0$/, "");
}

function gigabytes(bytes: number): string {
  return Number((bytes / 1e9).toPrecision(2)).toLocaleString("en");
}
