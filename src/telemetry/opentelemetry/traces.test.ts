import { context, type Link, SpanStatusCode, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LockTrial } from "../../../test/fixtures/lock-trial.js";
import { settled } from "../../../test/fixtures/manual-runtime.js";
import { watch } from "../../../test/fixtures/outcome.js";
import type { Subscription } from "../subscription.js";
import { startTraces } from "./index.js";
import { spanContextOf } from "./traces.js";

let trial: LockTrial;
let exporter: InMemorySpanExporter;
let tracerProvider: BasicTracerProvider;
let traces: Subscription;

beforeEach(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trial = new LockTrial();
  exporter = new InMemorySpanExporter();
  tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  traces = startTraces({ tracerProvider });
});

afterEach(async () => {
  traces.stop();
  await tracerProvider.shutdown();
  context.disable();
  trace.disable();
});

function spans(name?: string): ReadableSpan[] {
  return exporter.getFinishedSpans().filter((span) => name === undefined || span.name === name);
}

/** The outcome and status of every span of this name. */
function ends(name: string): unknown[][] {
  return spans(name).map(({ attributes, status }) => [attributes["holdfast.outcome"], status.code]);
}

/** Runs `work` under an active span, as the instrumentation of a server does. */
function request<T>(name: string, work: () => Promise<T>): Promise<T> {
  return tracerProvider.getTracer("test").startActiveSpan(name, async (span) => {
    try {
      return await work();
    } finally {
      span.end();
    }
  });
}

const { ERROR, UNSET } = SpanStatusCode;

describe("the span of a wait", () => {
  it("tells of the lock and the outcome, within the trace of its caller", async () => {
    const lease = await request("GET /", () => trial.locks.mutex("x").acquire());
    const [wait, caller] = spans();
    expect(wait?.name).toBe("holdfast.acquire");
    expect(wait?.attributes).toEqual({
      "holdfast.store": "ledger",
      "holdfast.namespace": "",
      "holdfast.kind": "mutex",
      "holdfast.name": "x",
      "holdfast.outcome": "granted",
      "holdfast.token": `${lease.token}`,
    });
    expect(wait?.parentSpanContext?.spanId).toBe(caller?.spanContext().spanId);
    expect(wait?.links).toEqual([]);
  });

  it("links to the trace of the holder, in another process or in this one", async () => {
    const held = await request("holder", () => trial.others.mutex("x").acquire());
    const waiting = ["first", "second"].map((name) =>
      request(name, async () => watch(trial.locks.mutex("x").acquire())),
    );
    const [first, second] = await Promise.all(waiting);
    await settled();
    await held.release();
    await trial.runtime.advance(0);
    await first?.value?.release();
    await trial.runtime.advance(0);
    expect(second?.value?.state).toBe("held");
    const third = watch(trial.locks.mutex("x").acquire());
    await settled();
    await second?.value?.release();
    await trial.runtime.advance(0);
    await third.value?.release();
    const [byHolder, byFirst, bySecond, byThird] = spans("holdfast.acquire");
    const linkTo = (span: ReadableSpan | undefined): Partial<Link>[] => {
      const { traceId, spanId } = span?.spanContext() ?? {};
      return [expect.objectContaining({ context: expect.objectContaining({ traceId, spanId }) })];
    };
    expect(byFirst?.links).toEqual(linkTo(byHolder));
    expect(byFirst?.links[0]?.context.isRemote).toBe(true);
    expect(byFirst?.attributes["holdfast.ahead"]).toBe(0);
    expect(bySecond?.links).toEqual(linkTo(byHolder));
    // The claim in the store is that of the first turn; this process knows whose turn it is.
    expect(byThird?.links).toEqual(linkTo(bySecond));
  });

  it("links to nothing where the holder is not traced, or its meta is garbage", async () => {
    traces.stop();
    await trial.others.mutex("x").acquire();
    await trial.others.mutex("y").acquire({ meta: { traceparent: "00-garbage" } });
    traces = startTraces({ tracerProvider });
    await trial.locks.mutex("x").tryAcquire();
    await trial.locks.mutex("y").tryAcquire();
    expect(spans("holdfast.acquire").map(({ links }) => links)).toEqual([[], []]);
  });

  it("fails only where the store does: contention is no error", async () => {
    await trial.others.mutex("x").acquire();
    exporter.reset();
    const mutex = trial.locks.mutex("x");
    await mutex.tryAcquire();
    void watch(mutex.acquire({ waitMs: 10 }));
    await trial.runtime.advance(10);
    const stop = new AbortController();
    void watch(mutex.acquire({ signal: stop.signal }));
    await settled();
    stop.abort();
    await settled();
    trial.arbiter.fate = "request broken";
    void watch(trial.locks.mutex("y").acquire({ storeTimeoutMs: 100 }));
    await trial.runtime.advance(100);
    expect(ends("holdfast.acquire")).toEqual([
      ["busy", UNSET],
      ["timeout", UNSET],
      ["aborted", UNSET],
      ["error", ERROR],
    ]);
    const failed = spans("holdfast.acquire").at(-1);
    expect(failed?.status.message).toContain("store");
    expect(failed?.events[0]?.name).toBe("exception");
  });
});

describe("the span of a run", () => {
  it("is active in the body, and is the parent of the wait", async () => {
    const inner = await request("GET /", () =>
      trial.locks.mutex("x").run(async () => {
        await settled();
        return request("work", async () => trace.getActiveSpan()?.spanContext().traceId);
      }),
    );
    const [wait] = spans("holdfast.acquire");
    const [work] = spans("work");
    const [run] = spans("holdfast.run");
    const [caller] = spans("GET /");
    const runId = run?.spanContext().spanId;
    expect(inner).toBe(run?.spanContext().traceId);
    expect(wait?.parentSpanContext?.spanId).toBe(runId);
    expect(work?.parentSpanContext?.spanId).toBe(runId);
    expect(run?.parentSpanContext?.spanId).toBe(caller?.spanContext().spanId);
    expect(trace.getActiveSpan()).toBeUndefined();
  });

  it("tells how the run ended, with its error", async () => {
    const { locks, others } = trial;
    const mutex = locks.mutex("x");
    await mutex.run(() => 7);
    await expect(mutex.run(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
    await others.mutex("y").acquire();
    await locks.mutex("y").tryRun(() => {});
    void watch(locks.mutex("y").run(() => {}, { waitMs: 10 }));
    await trial.runtime.advance(10);
    expect(ends("holdfast.run")).toEqual([
      ["done", UNSET],
      ["failed", ERROR],
      ["not_run", UNSET],
      ["not_run", ERROR],
    ]);
    expect(spans("holdfast.run")[1]?.status.message).toBe("no");
  });

  it("tells of late renewals and the loss, as events", async () => {
    let finish = (): void => {};
    const working = new Promise<void>((resume) => {
      finish = resume;
    });
    const run = watch(trial.locks.mutex("x").run(() => working));
    await settled();
    await trial.loseTouch();
    finish();
    await settled();
    expect(run.state).toBe("rejected");
    const [span] = spans("holdfast.run");
    const names = span?.events.map(({ name }) => name) ?? [];
    expect(names[0]).toBe("holdfast.renewal_failed");
    expect(names.slice(-2)).toEqual(["holdfast.lost", "exception"]);
    const lost = span?.events.find(({ name }) => name === "holdfast.lost");
    expect(lost?.attributes).toMatchObject({
      "holdfast.name": "x",
      "holdfast.reason": "expired",
    });
    expect(ends("holdfast.run")).toEqual([["lost", ERROR]]);
  });
});

it("tells of the loss in the span of the caller where there is no run", async () => {
  await request("GET /", async () => {
    await trial.locks.mutex("x").acquire();
    await trial.loseTouch();
  });
  const names = spans("GET /")[0]?.events.map(({ name }) => name);
  expect(names?.at(-1)).toBe("holdfast.lost");
});

it("ends its spans when it is stopped, and makes none afterwards", async () => {
  await trial.others.mutex("x").acquire();
  exporter.reset();
  void watch(trial.locks.mutex("x").acquire());
  await settled();
  traces.stop();
  expect(ends("holdfast.acquire")).toEqual([[undefined, UNSET]]);
  await trial.locks.mutex("y").run(() => {});
  expect(spans()).toHaveLength(1);
});

it("does nothing without an SDK, and writes no trace into the store", async () => {
  traces.stop();
  traces = startTraces();
  await trial.locks.mutex("x").run(() => {});
  await trial.locks.mutex("x").acquire();
  const { holders } = await trial.others.inspect("x");
  expect(holders[0]?.meta).not.toHaveProperty("traceparent");
});

it.each([
  undefined,
  7,
  "",
  `00-${"0".repeat(32)}-${"1".repeat(16)}-01`,
  `00-${"1".repeat(32)}-${"0".repeat(16)}-01`,
  `01-${"1".repeat(32)}-${"1".repeat(16)}-01`,
  `00-${"A".repeat(32)}-${"1".repeat(16)}-01`,
  `00-${"1".repeat(32)}-${"1".repeat(16)}-01\n`,
])("reads no trace in %j", (text) => expect(spanContextOf(text)).toBeNull());
