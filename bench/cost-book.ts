import { machinesOf, type Result } from "./results.js";
import { figure } from "./table.js";

/** The cost of a number of leases that are held on Redis. */
export interface Sizing {
  readonly leases: number;
  readonly ttlS: number;
  readonly renewals: number;
  readonly calls: number;
  readonly cores: number;
  readonly serverBytes: number;
  readonly clientBytes: number;
}

/** A lease is renewed so often in its ttl. */
const RENEWALS_PER_TTL = 3;

type Work = readonly [title: string, question: string, contestant?: string];

const PAIRS: readonly Work[] = [
  ["redis", "uncontended"],
  ["redis, 1,000 at once", "many-names"],
  ["redis with `replicas: 1`", "replicas", "holdfast, replicas 1"],
  ["redis with `replicas: 1`, 100 at once", "replicas-names", "holdfast, replicas 1"],
  ["redlock, 5 servers", "uncontended"],
  ["postgres", "uncontended"],
  ["postgres, 100 at once", "many-names"],
  ["etcd", "uncontended"],
  ["etcd, 100 at once", "many-names"],
  ["zookeeper", "uncontended"],
  ["zookeeper, 100 at once", "many-names"],
];

/** The measured costs, by what they are the costs of. */
export class CostBook {
  readonly #results: readonly Result[];

  constructor(results: readonly Result[]) {
    this.#results = results;
  }

  /** The machines that measured, in words. */
  get machines(): string {
    return machinesOf(this.#results);
  }

  /** The figure of a contestant, or one of its further columns. Throws where there is none. */
  cost(store: string, question: string, contestant: string, column?: string): number {
    const value = this.#find(store, question, contestant, column);
    if (value === undefined || !Number.isFinite(value)) {
      const what = [store, question, contestant, column].filter(Boolean).join(", ");
      throw new Error(`The results have no figure for ${what}.`);
    }
    return value;
  }

  /** Many leases on Redis that are held, and renewed in batches. */
  sizing(leases: number, ttlS: number): Sizing {
    const renewals = (leases * RENEWALS_PER_TTL) / ttlS;
    return {
      leases,
      ttlS,
      renewals,
      calls: renewals / this.cost("redis", "held-leases", "holdfast"),
      cores: this.renewalCores("redis", leases, ttlS),
      serverBytes: leases * this.cost("redis", "footprint-held", "holdfast"),
      clientBytes: leases * this.cost("redis", "footprint-held", "holdfast", "client bytes/lease"),
    };
  }

  /** How many times longer it takes beside the largest crowd than beside the smallest. */
  growth(question: "crowd" | "growth-names"): number {
    const result = this.#results.find(({ question: { name } }) => name === question);
    const [first, ...others] = result?.standings ?? [];
    return (others.at(-1)?.median ?? Number.NaN) / (first?.median ?? Number.NaN);
  }

  /** The servers' work for a pair on five nodes, as a multiple of that on one. */
  redlockFactor(): number {
    const [one, five] = ["redis", "redlock"].map((store) => {
      return this.cost(store, "uncontended", "holdfast", "server CPU µs/pair");
    });
    return (five ?? Number.NaN) / (one ?? Number.NaN);
  }

  /** The cores that are busy with the renewals of so many leases. */
  renewalCores(store: "redis" | "postgres", leases: number, ttlS: number): number {
    const renewalUs =
      store === "redis"
        ? this.#ofRenewal("server CPU µs")
        : this.cost(store, "many-names", "holdfast", "server CPU µs/pair");
    return (leases * RENEWALS_PER_TTL * renewalUs) / ttlS / 1e6;
  }

  /** A row for each pair, with the columns that were measured. */
  pairRows(): readonly string[][] {
    const head = ["a pair", "server CPU µs", "client CPU µs", "bytes", "requests"];
    const rows = PAIRS.map(([title, question, contestant = "holdfast"]) => {
      const store = title.replace(/\W.*/, "");
      const column = (name: string): string =>
        figure(this.#find(store, question, contestant, `${name}/pair`));
      const requests = column("requests") || this.#requestsOf(store, question);
      return [title, ...["server CPU µs", "client CPU µs", "bytes"].map(column), requests];
    });
    return [head, ...rows];
  }

  otherRows(): readonly string[][] {
    const cost = (...path: Parameters<CostBook["cost"]>): string => figure(this.cost(...path));
    const held = (column?: string): string => cost("redis", "footprint-held", "holdfast", column);
    const waiting = (kind: string): string[] =>
      ["server bytes/waiter", undefined].map((column) => {
        return cost("redis", "footprint-waiting", `${kind}, 10,000 wait`, column);
      });
    const handoffs = ["redis", "postgres", "zookeeper"].map((store) => [
      `${store}: a handoff between two processes`,
      cost(store, "handoff", "holdfast", "server CPU µs/handoff"),
      cost(store, "handoff", "holdfast", "client CPU µs/handoff"),
      figure(this.#find(store, "handoff", "holdfast", "bytes/handoff")),
    ]);
    const renewal = ["server CPU µs", "client CPU µs", "bytes"].map((column) => {
      return figure(this.#ofRenewal(column));
    });
    const [serverUs = "", clientUs = "", bytes = ""] = renewal;
    return [
      [
        "",
        "server CPU µs",
        "client CPU µs",
        "bytes on the wire",
        "server memory, bytes",
        "client memory, bytes",
      ],
      ["redis: a lease that is held", "", "", "", held(), held("client bytes/lease")],
      ["redis: a renewal, up to 1,000 in a call", serverUs, clientUs, bytes],
      ["redis: a waiter", "", "", "", ...waiting("holdfast")],
      ['redis: a waiter with `fairness: "strict"`', "", "", "", ...waiting("holdfast strict")],
      ["etcd: a lease that is held", "", "", "", "one key", cost("etcd", "footprint", "holdfast")],
      ...handoffs,
    ];
  }

  /** Of a renewal on Redis, which travels with up to 1,000 others. */
  #ofRenewal(column: string): number {
    return this.cost("redis", "held-leases", "holdfast", `${column}/renewal`);
  }

  /** Counted on the wire, in a question of its own. */
  #requestsOf(store: string, question: string): string {
    if (store !== "redis" || question.startsWith("replicas")) return "";
    const column = question === "many-names" ? "requests/pair, 1,000 at once" : undefined;
    return figure(this.cost("redis", "calls", "holdfast", column));
  }

  #find(store: string, question: string, contestant: string, column?: string): number | undefined {
    const result = this.#results.find((one) => {
      return one.question.store === store && one.question.name === question;
    });
    const standing = result?.standings.find(({ name }) => name === contestant);
    return column === undefined ? standing?.median : standing?.more[column];
  }
}
