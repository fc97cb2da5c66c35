import { describe, expect, it } from "vitest";
import { processChecks } from "../api/doctor.js";
import { checksOver, danger, note, ok, warning } from "./examination.js";

const check = checksOver<{ readonly count: number; readonly name: string }>();

describe("a check", () => {
  const positive = check("test/positive", ["count"], ({ count }, ttlMs) => {
    if (count === 0) return null;
    return count > 0 ? ok(`${count} in ${ttlMs}`) : danger("negative", "why", "remedy");
  });

  it("judges the facts that it needs, and the ttl", () => {
    const facts = { count: { value: 3 }, name: { unknownBecause: "hidden" } };
    expect(positive.judge(facts, 10)).toEqual({
      id: "test/positive",
      severity: "ok",
      what: "3 in 10",
    });
  });

  it("is skipped with the reason where a fact is not known", () => {
    const facts = { count: { unknownBecause: "NOPERM." }, name: { value: "a" } };
    const skipped = { id: "test/positive", severity: "skipped", what: "NOPERM." };
    expect(positive.judge(facts, 10)).toEqual(skipped);
  });

  it("says nothing where it does not apply", () => {
    expect(positive.judge({ count: { value: 0 }, name: { value: "" } }, 10)).toBeNull();
  });

  it("has no remedy where there is none", () => {
    expect(note("seen", "why")).toEqual({ severity: "note", what: "seen", why: "why" });
    expect(warning("seen", "why", "do")).toMatchObject({ severity: "warning", remedy: "do" });
  });
});

describe("the event loop", () => {
  const severityAt = (loopDelayMs: number, ttlMs: number, hasRenewer = false) => {
    const facts = { loopDelayMs: { value: loopDelayMs }, hasRenewer: { value: hasRenewer } };
    return processChecks[0]?.judge(facts, ttlMs)?.severity;
  };

  it("is judged by the ttl", () => {
    expect(severityAt(9, 30_000)).toBe("ok");
    expect(severityAt(4_000, 30_000)).toBe("note");
    expect(severityAt(10_000, 30_000)).toBe("warning");
    expect(severityAt(9, 27)).toBe("warning");
  });

  it("may be blocked where a thread renews", () => {
    expect(severityAt(100_000, 30_000, true)).toBe("ok");
  });
});
