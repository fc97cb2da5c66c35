/**
 * How serious a finding is. `danger`: two processes can hold the same lock, or locks do not work,
 * even if nothing fails. `warning`: an ordinary failure, such as a restart, loses leases, lets two
 * processes hold the same lock, or stops all locks. `note`: worth knowing. `skipped`: the check
 * could not run; `what` says why.
 */
export type Severity = "ok" | "note" | "warning" | "danger" | "skipped";

/** The result of one check. */
export interface Finding {
  /** A stable id that scripts can rely on, such as `redis/eviction`. */
  readonly id: string;
  /** How serious the finding is. */
  readonly severity: Severity;
  /** What the check found, in one sentence. */
  readonly what: string;
  /** Why it matters. Present on notes, warnings and dangers. */
  readonly why?: string;
  /** What to do about it. Present on warnings and dangers, and on some notes. */
  readonly remedy?: string;
}

/** What happens to the locks of this deployment in one kind of failure. */
export interface FailureCase {
  /** The failure, such as `The server restarts`. */
  readonly event: string;
  /** What happens to leases and waiters. */
  readonly outcome: string;
  /** Mutual exclusion holds: two processes never think they hold the lock at the same time. */
  readonly isSafe: boolean;
}

/** The result of examining a store and this process, for locks with a given ttl. */
export interface Examination {
  /** The name of the store, such as `redis` or `file`. */
  readonly store: string;
  /** The findings, in the order in which the checks ran. */
  readonly findings: readonly Finding[];
  /** What happens to locks in each kind of failure; empty if the store does not say. */
  readonly failureCases: readonly FailureCase[];
}

/** Options of an examination. */
export interface ExamineOptions {
  /** The ttl of your locks, in milliseconds. Default: the default ttl of locks. */
  readonly ttlMs?: number | undefined;
  /** Cancels the examination, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** What a store gets when it is examined. */
export interface ExamineRequest {
  /** The ttl of the locks, in milliseconds. */
  readonly ttlMs: number;
  /** Aborted when the caller no longer wants the answer; the store then stops reading. */
  readonly signal: AbortSignal;
}

/** A fact about the deployment, or the reason why it could not be read. */
export type Fact<T> = { readonly value: T } | { readonly unknownBecause: string };

/** All facts about a deployment, each known or unknown. */
export type Facts<All> = { readonly [Name in keyof All]: Fact<All[Name]> };

/** The finding of one check, without the check's id. */
export type Verdict = Omit<Finding, "id">;

/** Turns facts into a finding. A check that lacks one of its facts is skipped. */
export interface Check<All> {
  readonly id: string;
  /** Returns null if the check does not apply to this deployment. */
  judge(facts: Facts<All>, ttlMs: number): Finding | null;
}

/** Returns a function that makes checks on the facts `All`. Each check names the facts it needs. */
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
