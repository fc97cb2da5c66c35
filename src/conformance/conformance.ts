import assert from "node:assert/strict";
import { ClosedError } from "../errors/index.js";
import { behaviours } from "./behaviours.js";
import { Context } from "./context.js";
import type { Harness } from "./harness.js";
import type { Behaviour } from "./needs.js";
import { CASE_MS, within } from "./patience.js";

/** One test, for any test runner. */
export interface ConformanceCase {
  /** A sentence about the store; no two cases share it. */
  readonly title: string;
  /** Why the case does not apply to the store, or null when it does. */
  readonly skip: string | null;
  /** Whether it blocks the event loop: run it while no other case of this process runs. */
  readonly alone: boolean;
  /** Rejects when the store breaks the promise. Closes everything that it opened. */
  run(): Promise<void>;
}

/**
 * The cases for one store. Cases use different locks, so they may run at the same time, except
 * those that are `alone`.
 *
 * @example
 * import { test } from "node:test";
 * import { conformance } from "holdfast/conformance";
 *
 * for (const { title, skip, run } of conformance(harness)) {
 *   test(title, { skip: skip ?? false }, run);
 * }
 */
export function conformance(harness: Harness): readonly ConformanceCase[] {
  const { traits, child, exempt = {} } = harness;
  assert.ok(
    traits.scope === "process" || child,
    `the harness of a store for more than one process needs "child"`,
  );
  const titles = new Set(behaviours.map(({ title }) => title));
  for (const title of Object.keys(exempt))
    assert.ok(titles.has(title), `the harness exempts an unknown case: "${title}"`);
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
    // A case that failed leaves acquires behind. They reject when its clients close.
    if (!(error instanceof ClosedError)) onFailure(error);
  };
  process.on("unhandledRejection", onUnhandled);
  const context = new Context(harness);
  await within(CASE_MS, behaviour.title, behaviour.run(context)).catch(onFailure);
  await context.end().catch(onFailure);
  // Node reports an unhandled rejection after the current turn of the event loop.
  await new Promise((resume) => setImmediate(resume));
  process.off("unhandledRejection", onUnhandled);
  // The first failure is the cause; later ones may follow from it.
  if (failures.length > 0) throw failures[0];
}
