import { describe, expect, it } from "vitest";
import { TimeLeft } from "./time-left.js";

describe("the time left", () => {
  it("is the time of the last runs, and an average where a question never ran", () => {
    const left = new TimeLeft([60_000, Number.NaN, 180_000]);
    const startMs = performance.now();
    expect(left.text(startMs)).toBe("6 min left");
    expect(left.text(startMs + 61_000)).toBe("5 min left");
    left.next();
    left.next();
    expect(left.text()).toBe("3 min left");
    expect(new TimeLeft([Number.NaN]).text()).toBe("");
  });
});
