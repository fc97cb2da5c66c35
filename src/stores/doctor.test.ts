import { describe, expect, it } from "vitest";
import { ManualRuntime } from "../../test/fixtures/manual-runtime.js";
import type { Finding } from "../contract/examination.js";
import {
  judgeDrift,
  judgeRoundTrip,
  judgeSkew,
  known,
  measureRoundTrip,
  readClock,
  readFacts,
  seconds,
  worstFailureCases,
  worstFindings,
} from "./doctor.js";

const { signal } = new AbortController();

describe("facts", () => {
  it("are read one after the other, and a refusal is the reason of one fact only", async () => {
    const order: string[] = [];
    const facts = await readFacts(
      {
        first: async () => order.push("first"),
        second: () => Promise.reject(new Error("NOPERM")),
        third: () => order.push("third"),
      },
      { runtime: new ManualRuntime(), signal },
    );
    expect(order).toEqual(["first", "third"]);
    expect(facts).toEqual({
      first: { value: 1 },
      second: { unknownBecause: "NOPERM." },
      third: { value: 2 },
    });
    expect(known(facts.second)).toBeUndefined();
  });

  it("take a bounded time, each and all of them", async () => {
    const runtime = new ManualRuntime();
    const silent = (): Promise<never> => new Promise(() => {});
    const probes = { a: () => 1, b: silent, c: silent, d: silent, e: silent, f: silent };
    const reading = readFacts(probes, { runtime, signal });
    await runtime.advance(8_000);
    const facts = await reading;
    expect(known(facts.a)).toBe(1);
    expect(facts.b).toEqual({ unknownBecause: "No answer within 2000 ms." });
    expect(facts.f).toEqual({ unknownBecause: "Not asked: earlier checks took too long." });
    expect(runtime.alarms).toBe(0);
  });

  it("are not asked for where the first gets no answer", async () => {
    const runtime = new ManualRuntime();
    const probes = { a: (): Promise<never> => new Promise(() => {}), b: () => 2 };
    const reading = readFacts(probes, { runtime, signal });
    await runtime.advance(2_000);
    expect(known((await reading).b)).toBeUndefined();
  });

  it("end with the signal", async () => {
    const aborted = AbortSignal.abort(new Error("no longer wanted"));
    const reading = readFacts({ a: () => 1 }, { runtime: new ManualRuntime(), signal: aborted });
    await expect(reading).rejects.toThrow("no longer wanted");
  });
});

describe("a clock", () => {
  /** A server whose clock runs at `pace`, ahead by `aheadMs`, and answers after 10 ms each way. */
  const read = async (pace: number, aheadMs = 0) => {
    const runtime = new ManualRuntime();
    const [startMs, wallUs] = [runtime.nowMs, runtime.clock.wallUs()];
    const reading = readClock(runtime, async () => {
      runtime.block(10);
      const told = wallUs + (runtime.nowMs - startMs) * 1000 * pace + aheadMs * 1000;
      runtime.block(10);
      return told;
    });
    await runtime.advance(1_000);
    return await reading;
  };

  it("that runs evenly is fine", async () => {
    const reading = await read(1);
    expect(judgeDrift(reading).severity).toBe("ok");
    expect(judgeSkew(reading).severity).toBe("ok");
  });

  it("that runs fast or slow is a danger, as far as the round trip lets it be known", async () => {
    expect(judgeDrift(await read(1.1)).severity).toBe("danger");
    expect(judgeDrift(await read(0.9)).severity).toBe("danger");
    expect(judgeDrift(await read(1.03)).severity).toBe("ok");
  });

  it("that is wrong is told, with its direction", async () => {
    expect(judgeSkew(await read(1, 20_000))).toMatchObject({ severity: "note" });
    expect(judgeSkew(await read(1, 20_000)).what).toContain("20 s ahead of ours");
    expect(judgeSkew(await read(1, -86_400_000)).severity).toBe("warning");
  });
});

describe("a round trip", () => {
  it("is judged by the ttl", () => {
    expect(judgeRoundTrip({ slowestMs: 5, count: 9 }, 30_000).severity).toBe("ok");
    expect(judgeRoundTrip({ slowestMs: 4_000, count: 9 }, 30_000).severity).toBe("note");
    expect(judgeRoundTrip({ slowestMs: 10_000, count: 9 }, 30_000).severity).toBe("warning");
  });

  it("is measured for a bounded time", async () => {
    const runtime = new ManualRuntime();
    const measured = await measureRoundTrip(runtime.clock, async () => runtime.block(100));
    expect(measured).toEqual({ slowestMs: 100, count: 5 });
  });
});

describe("several servers", () => {
  const finding = (severity: Finding["severity"], what: string): Finding => ({
    id: "test/one",
    severity,
    what,
  });

  it("give one finding for each check: the worst, and where it is", () => {
    const found = worstFindings([
      { server: "a", findings: [finding("ok", "Fine.")] },
      { server: "b", findings: [finding("danger", "Bad.")] },
      { server: "c", findings: [finding("danger", "Bad, too.")] },
    ]);
    expect(found).toEqual([finding("danger", "Bad. (b, c)")]);
  });

  it("fail as the worst of them fails", () => {
    const failure = (isSafe: boolean) => ({ event: "x", outcome: `${isSafe}`, isSafe });
    expect(worstFailureCases([[failure(true)], [failure(false)]])).toEqual([failure(false)]);
    expect(worstFailureCases([[failure(true)], [failure(true)]])).toEqual([failure(true)]);
  });
});

it("a time is written for people", () => {
  expect([333.2, 1_000, 10_000, 1_666].map(seconds)).toEqual(["334 ms", "1 s", "10 s", "1.7 s"]);
});
