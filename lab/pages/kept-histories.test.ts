import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Entry } from "../history.js";
import { killedHolder } from "../timeline/example-histories.js";
import { record, recordedIn, withoutRepeats } from "./kept-histories.js";

const asks = (atMs: number, lane: string): Entry => ({ atMs, type: "asks", lane });
const refused = (atMs: number, lane: string, why: string): Entry => {
  return { atMs, type: "refused", lane, why };
};

it("keeps one refusal of each reason, and the request that is answered", () => {
  const entries: readonly Entry[] = [
    asks(1, "B"),
    refused(2, "B", "no server"),
    asks(3, "B"),
    asks(4, "C"),
    refused(5, "B", "no server"),
    refused(6, "C", "no server"),
    asks(7, "B"),
    refused(8, "B", "breaker is open"),
    asks(9, "B"),
    { atMs: 10, type: "believes", lane: "B" },
  ];
  expect(withoutRepeats(entries).map(({ atMs }) => atMs)).toEqual([1, 2, 4, 6, 7, 8, 9, 10]);
});

it("does not replace a history by one with longer leases, or with a wrong verdict", () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-lab-"));
  const file = join(folder, "histories.jsonl");
  const take = (ttlMs: number, durationMs: number) =>
    record([{ ...killedHolder, ttlMs, durationMs }], file);
  const kept = () => recordedIn(file).map(({ ttlMs, durationMs }) => [ttlMs, durationMs]);
  try {
    expect(take(2_000, 1)).toEqual([]);
    expect(take(4_000, 2)).toEqual([]);
    expect(kept()).toEqual([[2_000, 1]]);
    take(2_000, 3);
    expect(kept()).toEqual([[2_000, 3]]);
    take(1_000, 4);
    expect(kept()).toEqual([[1_000, 4]]);
    const held = {
      ...killedHolder,
      ttlMs: 1_000,
      verdict: { kind: "held", text: "held" },
    } as const;
    expect(record([held], file)).toEqual([held]);
    expect(kept()).toEqual([[1_000, 4]]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
