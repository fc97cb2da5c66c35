/**
 * How much a finding matters. `danger`: without any further fault, two may hold a lock, or locks do
 * not work. `warning`: a fault that must be expected, such as a restart, loses leases, lets two
 * hold a lock, or stops the locks. `note`: worth knowing. `skipped`: the check could not be done;
 * `what` says why.
 */
export type Severity = "ok" | "note" | "warning" | "danger" | "skipped";

/** The result of one check. */
export interface Finding {
  /** Stable, for scripts and for the table of checks: `redis/eviction`. */
  readonly id: string;
  /** How much the finding matters. */
  readonly severity: Severity;
  /** The state that was seen, in one sentence. */
  readonly what: string;
  /** Why it matters; for notes, warnings and dangers. */
  readonly why?: string;
  /** The remedy; for warnings and dangers, and for notes where there is one. */
  readonly remedy?: string;
}

/** What one failure does to the locks of this deployment. */
export interface FailureCase {
  /** The failure: `The server restarts`. */
  readonly event: string;
  /** Its effect on leases and waiters. */
  readonly outcome: string;
  /** Mutual exclusion holds: no two processes think at the same time that they hold one lock. */
  readonly isSafe: boolean;
}

/** A judgement of a store and of this process, for locks of one ttl. */
export interface Examination {
  /** The name of the store: `redis`, `file`. */
  readonly store: string;
  /** In the order of the checks. */
  readonly findings: readonly Finding[];
  /** What failures do to the locks of this deployment; empty if the store does not say. */
  readonly failureCases: readonly FailureCase[];
}

/** How to judge. */
export interface ExamineOptions {
  /** The ttl to judge times against, in milliseconds. Default: that of the locks' defaults. */
  readonly ttlMs?: number | undefined;
  /** Ends the examination; it then rejects with the reason of the signal. */
  readonly signal?: AbortSignal | undefined;
}

/** The terms of an examination. */
export interface ExamineRequest {
  /** The ttl to judge times against. */
  readonly ttlMs: number;
  /** Aborted when the answer is no longer wanted: the store stops reading. */
  readonly signal: AbortSignal;
}

/** A fact that was read, or the reason why it could not be read. */
export type Fact<T> = { readonly value: T } | { readonly unknownBecause: string };

/** The facts of a deployment, each known or not. */
export type Facts<All> = { readonly [Name in keyof All]: Fact<All[Name]> };

/** The judgement of one check, without its id. */
export type Verdict = Omit<Finding, "id">;

/** A judgement over facts; a check without all its facts is skipped. */
export interface Check<All> {
  readonly id: string;
  /** Null where the check does not apply to this deployment. */
  judge(facts: Facts<All>, ttlMs: number): Finding | null;
}

/** Makes checks over the facts `All`: each names the facts that its judgement needs. */
export function checksOver<All>() {
  return <Name extends keyof All>(
    id: string,
    needs: readonly Name[],
    judge: (facts: Pick<All, Name>, ttlMs: number) => Verdict | null,
  ): Check<All> => ({
    id,
    judge(facts, ttlMs) {
      const known: Partial<Pick<All, Name>> = {};
      for (const name of needs) {
        const fact: Fact<All[Name]> = facts[name];
        if ("unknownBecause" in fact) {
          return { id, severity: "skipped", what: fact.unknownBecause };
        }
        known[name] = fact.value;
      }
      const verdict = judge(known as Pick<All, Name>, ttlMs);
      return verdict && { id, ...verdict };
    },
  });
}

export const ok = (what: string): Verdict => ({ severity: "ok", what });

const judged =
  (severity: Severity) =>
  (what: string, why: string, remedy?: string): Verdict =>
    remedy === undefined ? { severity, what, why } : { severity, what, why, remedy };

export const note: (what: string, why: string, remedy?: string) => Verdict = judged("note");
export const warning: (what: string, why: string, remedy: string) => Verdict = judged("warning");
export const danger: (what: string, why: string, remedy: string) => Verdict = judged("danger");
