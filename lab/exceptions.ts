/**
 * The cells in which a store of Holdfast need not hold, each with the event in the table "What
 * survives what" of the store's page that says so. A test looks for these rows.
 */
import type { VerdictKind } from "./history.js";

export interface Exception {
  readonly kind: VerdictKind;
  /** The page in docs/stores, without its ending. */
  readonly page: string;
  /** The beginning of the row. */
  readonly event: string;
}

const FENCE = "holder pauses between its last check and its write";
const EMPTY = "restart without persistence";
const FAILOVER = "failover, `replicas: 0`";
const CLOCK = "clock of the server jumps ahead";
const DATA = "the data is lost";

type Exceptions = Readonly<Record<string, Exception>>;

const of =
  (page: string) =>
  (kind: VerdictKind, event: string): Exception => ({ kind, page, event });
const redis = of("redis");
const redlock = of("redlock");
const etcd = of("etcd");
const zookeeper = of("zookeeper");
const postgres = of("postgres");
const file = of("file");

/** The holder is told at its next renewal. */
const forgotten: Exceptions = {
  "restarts-empty": redis("told late", EMPTY),
  "clock-jump": redis("told late", CLOCK),
};
const unreplicated: Exceptions = {
  ...forgotten,
  failover: redis("told late", FAILOVER),
  "wait-elsewhere": redis("told late", FAILOVER),
  "other-replica": redis("told late", FAILOVER),
};
/** The write after the last check is a limit of every lock; only a fence refuses it. */
const unfenced: Exceptions = { "stopped-after-check": redis("two held", FENCE) };

/** By the ids of subject and fault. */
export const exceptions: Readonly<Record<string, Exceptions>> = {
  "holdfast-redis": { ...unreplicated, ...unfenced },
  "holdfast-fenced": unreplicated,
  "holdfast-replicas": { ...forgotten, ...unfenced },
  "holdfast-redlock": {
    // A holder on a bare majority that reaches no other node is not alone until its deadline.
    "clock-jump": redlock("told late", "clock of 2 nodes jumps forward"),
    "far-waiter": redlock("overtaken", "a waiter is far from the nodes"),
    "stopped-after-check": redlock("two held", FENCE),
  },
  // The data of all servers is lost: the holder is told by its watch or its next renewal.
  "holdfast-etcd": {
    "restarts-empty": etcd("told late", DATA),
    "stopped-after-check": etcd("two held", FENCE),
  },
  "holdfast-zookeeper": {
    "restarts-empty": zookeeper("told late", DATA),
    "stopped-after-check": zookeeper("two held", FENCE),
  },
  "holdfast-postgres": {
    "restarts-empty": postgres("told late", "restore from a backup"),
    "clock-jump": postgres("told late", CLOCK),
    // Free names wait for the longest ttl, and at least a minute.
    failover: postgres("stuck", "promotion of a standby"),
    "stopped-after-check": postgres("two held", FENCE),
  },
  "holdfast-file": {
    "restarts-empty": file("told late", "the file is deleted"),
    "stopped-after-check": file("two held", FENCE),
  },
};
