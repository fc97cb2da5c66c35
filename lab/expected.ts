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

/** The write after the last check is a limit of every lock; only a fence refuses it. */
const unfenced = { "stopped-after-check": "two held" } as const;
/** The holder is told at its next renewal: docs/stores/redis.md. */
const forgotten = {
  "restarts-empty": "told late",
  "clock-jump": "told late",
} as const;
const unreplicated = {
  ...forgotten,
  failover: "told late",
  "wait-elsewhere": "told late",
  "other-replica": "told late",
} as const;

/** The exceptions in the tables "What survives what" of the stores' pages. */
const holdfast: Failures = {
  "holdfast-redis": { ...unreplicated, ...unfenced },
  "holdfast-fenced": unreplicated,
  "holdfast-replicas": { ...forgotten, ...unfenced },
  // A holder on a bare majority that reaches no other node is not alone until its deadline.
  "holdfast-redlock": { "clock-jump": "told late", "far-waiter": "overtaken", ...unfenced },
  // The data of all servers is lost: the holder is told by its watch or its next renewal.
  "holdfast-etcd": { "restarts-empty": "told late", ...unfenced },
  "holdfast-zookeeper": { "restarts-empty": "told late", ...unfenced },
  // After a promotion free names wait for the longest ttl, and at least a minute.
  "holdfast-postgres": { "restarts-empty": "told late", failover: "stuck", ...unfenced },
  "holdfast-file": unfenced,
};

/** The failure that is expected; null where the subject must hold. */
export function expectedFailure(subject: string, fault: string): VerdictKind | null {
  return { ...ladder, ...waiting, ...holdfast }[subject]?.[fault] ?? null;
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
  const isLeeway = failure === "told late" || (failure === "overtaken" && subject in holdfast);
  return isLeeway && GOOD.includes(kind);
}
