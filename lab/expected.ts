/**
 * The cells of the matrix in which a subject fails. In all other cells it holds, or its holder is
 * told in time. A test compares the matrix of the ladder with this table; the command compares the
 * stores of Holdfast.
 */

import type { Verdict, VerdictKind } from "./history.js";

/** By the ids of subject and fault. */
type Failures = Readonly<Record<string, Readonly<Record<string, VerdictKind>>>>;

/** A server that forgets the lock, or expires it early, lets the next process in. */
const forgetful = {
  failover: "two held",
  "wait-elsewhere": "two held",
  "other-replica": "two held",
  "restarts-empty": "two held",
} as const;
const early = { ...forgetful, "clock-jump": "two held" } as const;
/** A program without a clock does not notice a pause. */
const unaware = {
  ...early,
  "blocked-loop": "two held",
  "stopped-holder": "two held",
  "stopped-after-check": "two held",
  "late-copy": "ghost",
} as const;
const shortLived = { ...unaware, "long-work": "two held", "slow-renewals": "two held" } as const;

const ladder: Failures = {
  "rung-1": {
    ...forgetful,
    "killed-holder": "stuck",
    "killed-in-acquire": "stuck",
    "late-release": "stuck",
    "lost-reply": "stuck",
    "late-copy": "ghost",
  },
  "rung-1-half": {
    ...shortLived,
    "killed-in-acquire": "stuck",
    "late-release": "two held",
    "lost-reply": "stuck",
  },
  "rung-2": { ...shortLived, "late-release": "two held", "lost-reply": "stuck" },
  "rung-3": { ...shortLived, "lost-reply": "stuck" },
  "rung-4": shortLived,
  "rung-5-exact": shortLived,
  "rung-5": unaware,
  "rung-6a": {
    "wait-elsewhere": "two held",
    "other-replica": "two held",
    "restarts-empty": "two held",
    "clock-jump": "two held",
    "late-copy": "ghost",
    "stopped-after-check": "two held",
  },
  "rung-6b": {
    "restarts-empty": "two held",
    "clock-jump": "two held",
    "late-copy": "ghost",
    "stopped-after-check": "two held",
  },
};

const waiting: Failures = {
  "rung-w-spin": { "far-waiter": "overtaken" },
  "rung-w-herd": { "far-waiter": "overtaken" },
};

/** The failure that is expected; null where the subject must hold. */
export function expectedFailure(subject: string, fault: string): VerdictKind | null {
  const failure = { ...ladder, ...waiting }[subject]?.[fault];
  return failure ?? exceptions[subject]?.[fault]?.kind ?? null;
}

const GOOD: readonly VerdictKind[] = ["held", "told in time"];

/**
 * Whether the verdict is the expected one. A loss that may be told late may also be told in time:
 * the renewal that tells of it is due at any moment. A store that promises no order may keep it.
 */
export function isExpected(subject: string, fault: string, { kind }: Verdict): boolean {
  const failure = expectedFailure(subject, fault);
  if (failure === null) return GOOD.includes(kind);
  if (kind === failure) return true;
  const isLeeway = failure === "told late" || (failure === "overtaken" && subject in exceptions);
  return isLeeway && GOOD.includes(kind);
}

/**
 * The cells in which a store of Holdfast need not hold, each with the event in the table "What
 * survives what" of the store's page that says so. A test looks for these rows.
 */

interface Exception {
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
