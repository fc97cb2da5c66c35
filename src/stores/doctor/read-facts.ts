import type { Check, Fact, Facts } from "../../contract/checks.js";
import type { Finding } from "../../contract/examination.js";
import type { Runtime } from "../../time/runtime.js";
import { TimeLimitError, within } from "../../time/timers.js";

/** How to read each fact. A probe changes nothing; a throw says why the fact is not known. */
export type Probes<All> = { readonly [Name in keyof All]: () => Promise<All[Name]> | All[Name] };

/** The terms of one examination. */
export interface Reading {
  readonly runtime: Runtime;
  /** Aborted when the answer is no longer wanted. */
  readonly signal: AbortSignal;
  /** When it has to end, by the clock of the runtime. Default: 8 s after it begins. */
  readonly endMs?: number;
}

/** The time for one fact, and for all of them. A store has ten seconds. */
const FACT_MS = 2_000;
const ALL_MS = 8_000;

/**
 * Reads all facts, one after the other: what one probe sends does not delay the times that another
 * one measures. If the first probe gets no answer in time, the other ones are not asked. Rejects
 * only with the reason of the signal.
 */
export async function readFacts<All extends object>(
  probes: Probes<All>,
  { runtime, signal, endMs: givenMs }: Reading,
): Promise<Facts<All>> {
  const { clock, timers } = runtime;
  let endMs = givenMs ?? endOf(runtime);
  const facts: Record<string, Fact<unknown>> = {};
  for (const [name, probe] of Object.entries<() => unknown>(probes)) {
    signal.throwIfAborted();
    const limitMs = Math.min(FACT_MS, endMs - clock.nowMs());
    if (limitMs <= 0) {
      facts[name] = { unknownBecause: "Not asked: earlier checks took too long." };
      continue;
    }
    try {
      facts[name] = { value: await within(timers, limitMs, (async () => probe())()) };
    } catch (error) {
      const isFirst = Object.keys(facts).length === 0;
      if (isFirst && error instanceof TimeLimitError) endMs = clock.nowMs();
      facts[name] = { unknownBecause: sentence(error) };
    }
  }
  return facts as Facts<All>;
}

/** The end of an examination that begins now. */
export function endOf({ clock }: Runtime): number {
  return clock.nowMs() + ALL_MS;
}

function sentence(error: unknown): string {
  const said = error instanceof Error ? error.message : String(error);
  return said.endsWith(".") ? said : `${said}.`;
}

/** The findings of all checks that apply, in their order. */
export function findingsOf<All>(
  checks: readonly Check<All>[],
  facts: Facts<All>,
  ttlMs: number,
): Finding[] {
  return checks.flatMap((check) => check.judge(facts, ttlMs) ?? []);
}

/** The value of a fact; undefined where it is not known. */
export function known<T>(fact: Fact<T>): T | undefined {
  return "value" in fact ? fact.value : undefined;
}
