import type { Finding, Severity } from "./examination.js";

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
