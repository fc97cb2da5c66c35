import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { isFull } from "../../test/fixtures/depth.js";
import { hunt } from "./hunt.js";
import { mutants } from "./list.js";

const BUILD = fileURLToPath(new URL("../../build", import.meta.url));
const PATIENCE_MS = (isFull ? 20 : 1) * 30 * 60_000;

describe("planted bugs", () => {
  it("are all found by the seeds of a test run", { timeout: PATIENCE_MS }, async () => {
    const catches = await hunt(mutants, () => {}, BUILD);
    const escaped = catches.filter(({ seed }) => seed === null);
    expect(escaped.map(({ line }) => line)).toEqual([]);
    expect(catches.length).toBeGreaterThanOrEqual(25);
  });
});
