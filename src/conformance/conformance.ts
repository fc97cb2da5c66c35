import assert from "node:assert/strict";
import { ClosedError } from "../errors.js";
import type { Behaviour } from "./behaviour.js";
import { behaviours } from "./behaviours.js";
import { Context } from "./context.js";
import type { Harness } from "./harness.js";
import { CASE_MS, within } from "./patience.js";

/** One test, for any test runner. */
export interface ConformanceCase {
  /** A sentence about the store; no two cases share it. */
  readonly title: string;
  /** Why it does not apply to the store; null when it does. */
  readonly skip: string | null;
  /** It blocks the event loop: run it when no other case of this process is under way. */
  readonly alone: boolean;
  /** Rejects when the store does not behave; leaves nothing open either way. */
  run(): Promise<void>;
}

/**
 * The cases for one store. Cases do not touch each other's locks: all but those that are `alone`
 * may run at the same time.
 *
 * @example
 * for (const { title, skip, run } of conformance(harness)) {
 *   test(title, { skip: skip ?? false }, run);
 * }
 */
export function conformance(harness: Harness): readonly ConformanceCase[] {
  const { traits, child, exempt = {} } = harness;
  assert.ok(
    traits.scope === "process" || child,
    `a store for more than one process needs "child" in its harness`,
  );
  const titles = new Set(behaviours.map(({ title }) => title));
  for (const title of Object.keys(exempt)) assert.ok(titles.has(title), `no case: "${title}"`);
  return behaviours.map((behaviour) => ({
    title: behaviour.title,
    skip: exempt[behaviour.title] ?? behaviour.needs?.(traits, harness) ?? null,
    alone: behaviour.alone ?? false,
    run: () => run(behaviour, harness),
  }));
}

async function run(behaviour: Behaviour, harness: Harness): Promise<void> {
  const failures: unknown[] = [];
  const onFailure = (error: unknown): void => void failures.push(error);
  const onUnhandled = (error: unknown): void => {
    // Of another case that failed: what it left waiting ends when its clients are closed.
    if (!(error instanceof ClosedError)) onFailure(error);
  };
  process.on("unhandledRejection", onUnhandled);
  const context = new Context(harness);
  await within(CASE_MS, behaviour.title, behaviour.run(context)).catch(onFailure);
  await context.end().catch(onFailure);
  // Node tells about a rejection that nobody handles after the current turn.
  await new Promise((resume) => setImmediate(resume));
  process.off("unhandledRejection", onUnhandled);
  // The first is what went wrong; the others may follow from it.
  if (failures.length > 0) throw failures[0];
}
