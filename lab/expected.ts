/**
 * The cells of the matrix in which a subject fails. In all other cells it holds, or its holder is
 * told in time. A test compares the matrix of the ladder with this table; the command compares the
 * stores of Holdfast.
 */
import { exceptions } from "./exceptions.js";
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
