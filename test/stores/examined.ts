import { expect } from "vitest";
import type { Holdfast } from "../../src/api/holdfast.js";
import type { Examination, Finding, Severity } from "../../src/contract/examination.js";

/** The findings of an examination, for a test. */
export class Examined {
  readonly examination: Examination;

  constructor(examination: Examination) {
    this.examination = examination;
  }

  /** Throws where the check said nothing. */
  of(id: string): Finding {
    const finding = this.examination.findings.find((one) => one.id === id);
    if (!finding)
      throw new Error(`${id} is not among ${JSON.stringify(this.examination.findings)}`);
    return finding;
  }

  /** The ids of all findings of these severities. */
  ids(...severities: readonly Severity[]): string[] {
    const found = this.examination.findings.filter(({ severity }) => severities.includes(severity));
    return found.map(({ id }) => id);
  }

  /** Whether the event is safe in this deployment. */
  survives(event: string): boolean | undefined {
    return this.examination.failureCases.find((one) => one.event === event)?.isSafe;
  }
}

/** Examines, and closes the locks. */
export async function examined(locks: Holdfast, ttlMs = 30_000): Promise<Examined> {
  try {
    return new Examined(await locks.examine({ ttlMs }));
  } finally {
    await locks.close();
  }
}

/** Expects a finding of this severity, with a cause and a remedy. */
export function expectFound({ examination }: Examined, id: string, severity: Severity): void {
  const finding = examination.findings.find((one) => one.id === id);
  expect(finding).toMatchObject({ id, severity, why: expect.any(String) });
  if (severity !== "note") expect(finding?.remedy).toBeTruthy();
}

/** Expects that nothing is wrong: this deployment is a good one. */
export function expectGood(one: Examined): void {
  const bad = one.examination.findings.filter(({ severity }) => /warning|danger/.test(severity));
  expect(bad).toEqual([]);
}
