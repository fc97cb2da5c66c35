import { beforeEach, describe, expect, it } from "vitest";
import { ManualRuntime } from "../../test/fixtures/manual-runtime.js";
import { Limits } from "./limits.js";
import { SilenceLimit } from "./silence-limit.js";

const LIMIT_MS = 10_000;
const HEARTBEAT_MS = 3_000;
/** How long the process has to listen before it may say that the store is silent. */
const CHANCE_MS = HEARTBEAT_MS + 250;

let runtime: ManualRuntime;
let limit: SilenceLimit;
let toldMs: number | null;

beforeEach(() => {
  runtime = new ManualRuntime(0);
  toldMs = null;
  const listener = {
    heartbeatMs: HEARTBEAT_MS,
    onSilence: () => {
      toldMs = runtime.nowMs;
    },
  };
  limit = new SilenceLimit(runtime, new Limits(runtime), listener, {
    limitMs: LIMIT_MS,
    sinceMs: 0,
  });
});

describe("a silent store", () => {
  it("is told at the limit", async () => {
    await runtime.advance(LIMIT_MS - 1);
    expect(toldMs).toBeNull();
    await runtime.advance(1);
    expect(toldMs).toBe(LIMIT_MS);
  });

  it("is told at the limit after the last word", async () => {
    await runtime.advance(9_000);
    limit.heard();
    await runtime.advance(LIMIT_MS - 1);
    expect(toldMs).toBeNull();
    await runtime.advance(1);
    expect(toldMs).toBe(9_000 + LIMIT_MS);
  });

  it("is told once only, and never after the end", async () => {
    limit.end();
    await runtime.advance(2 * LIMIT_MS);
    expect(toldMs).toBeNull();
    expect(runtime.alarms).toBeLessThanOrEqual(1);
  });
});

describe("a process that could not listen", () => {
  it.each([
    { title: "for most of the limit", fromMs: 1_000, blockedMs: 9_100 },
    { title: "until just before the limit", fromMs: 1_000, blockedMs: 8_999 },
    { title: "for longer than the limit", fromMs: 1_000, blockedMs: 60_000 },
    { title: "from the first step on", fromMs: LIMIT_MS - CHANCE_MS + 1, blockedMs: 3_200 },
  ])("$title listens for a heartbeat and its answer first", async ({ fromMs, blockedMs }) => {
    await runtime.advance(fromMs);
    runtime.block(blockedMs);
    await runtime.advance(CHANCE_MS - 300);
    expect(toldMs).toBeNull();
    limit.heard();
    await runtime.advance(LIMIT_MS - 1);
    expect(toldMs).toBeNull();
  });

  it("tells the silence once it has listened in vain", async () => {
    await runtime.advance(1_000);
    runtime.block(60_000);
    await runtime.advance(CHANCE_MS + 300);
    expect(toldMs).not.toBeNull();
  });
});
