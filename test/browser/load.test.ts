/**
 * The dashboard with 10,000 locks and 1,000 waiters, on demand: `npm run dashboard:load`. It prints
 * how long a browser takes for the first paint and for each update, how busy the process that
 * serves is, and how much memory an hour of change takes, with a clock that the test moves.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { Sampler } from "../../src/dashboard/sampler.js";
import type { Holdfast } from "../../src/holdfast.js";
import type { LockView } from "../../src/store.js";
import { ManualPort, settled } from "../fixtures/manual-port.js";
import { findChromium, startChromium } from "./chromium.js";
import { Stage } from "./stage.js";

const LOCKS = 10_000;
const WAITERS = 1_000;
const CONTENDED = 50;
const WATCH_MS = 30_000;
const EVERY_MS = 5_000;
const MIB = 1_048_576;

function say(what: string, figure: string): void {
  console.log(`${what}: ${figure}`);
}

function metaOf(index: number): Record<string, unknown> {
  return { host: `web${index % 8}`, pid: 4_000 + index, label: "checkout" };
}

describe.skipIf(!process.env.HOLDFAST_LOAD)("a dashboard with 10,000 locks", () => {
  it.skipIf(!findChromium())("paints and updates in a browser", { timeout: 300_000 }, async () => {
    await using stage = await Stage.open({ everyMs: 1_000 });
    for (let index = 0; index < LOCKS; index += 1) await stage.hold(`cart:${index}`, metaOf(index));
    for (let index = 0; index < CONTENDED; index += 1) {
      await stage.queue(`cart:${index}`, WAITERS / CONTENDED, metaOf(index));
    }
    const browser = await startChromium(findChromium() ?? "");
    const page = await browser.newPage({ viewport: { width: 1_280, height: 900 } });
    await page.addInitScript(() => {
      const tasks: number[] = [];
      Object.assign(globalThis, { tasks });
      new PerformanceObserver((list) => {
        for (const { duration } of list.getEntries()) tasks.push(Math.round(duration));
      }).observe({ type: "longtask" });
    });
    await page.goto(stage.board.url);
    await page.waitForSelector("tbody tr");
    const [paintMs = 0, shownMs = 0] = await page.evaluate(() => {
      const [paint] = performance.getEntriesByName("first-contentful-paint");
      return [paint?.startTime ?? 0, performance.now()];
    });
    say("first contentful paint", `${paintMs.toFixed(0)} ms`);
    say("list shown", `${shownMs.toFixed(0)} ms after the start of the navigation`);

    const session = await page.context().newCDPSession(page);
    await session.send("Performance.enable");
    const metrics = async (): Promise<Record<string, number>> => {
      const { metrics: all } = await session.send("Performance.getMetrics");
      return Object.fromEntries(all.map(({ name, value }) => [name, value]));
    };
    const delay = monitorEventLoopDelay({ resolution: 5 });
    delay.enable();
    const before = await metrics();
    const cpu = process.cpuUsage();
    const updates = await page.evaluate((watchMs) => {
      const live = document.querySelector(".live");
      let count = 0;
      const observer = new MutationObserver(() => {
        count += 1;
      });
      if (live) observer.observe(live, { subtree: true, characterData: true });
      return new Promise<number>((resolve) => setTimeout(() => resolve(count), watchMs));
    }, WATCH_MS);
    const { user, system } = process.cpuUsage(cpu);
    const after = await metrics();
    delay.disable();
    const each = (name: string): string =>
      `${((((after[name] ?? 0) - (before[name] ?? 0)) * 1_000) / updates).toFixed(1)} ms`;
    say("updates", `${updates} in ${WATCH_MS / 1_000} s`);
    say("browser, main thread for each update", each("TaskDuration"));
    say(
      "  script, layout, style",
      ["Script", "Layout", "RecalcStyle"].map((part) => each(`${part}Duration`)).join(", "),
    );
    say("browser, long tasks", `${await page.evaluate("JSON.stringify(tasks)")} ms`);
    say("browser, heap", `${((after.JSHeapUsedSize ?? 0) / MIB).toFixed(1)} MiB`);
    say(
      "server, processor time for each look",
      `${((user + system) / 1_000 / updates).toFixed(0)} ms`,
    );
    const ms = (nanoseconds: number): string => `${(nanoseconds / 1e6).toFixed(0)} ms`;
    say("server, event loop late by (p99, most)", `${ms(delay.percentile(99))}, ${ms(delay.max)}`);
    await browser.close();
    expect(updates).toBeGreaterThan(3);
  });

  it("takes a bounded memory over an hour of change", { timeout: 1_800_000 }, async () => {
    setFlagsFromString("--expose-gc");
    const collect: () => void = runInNewContext("gc");
    const port = new ManualPort();
    const changing = new ChangingLocks(port);
    const sampler = new Sampler(changing as unknown as Holdfast, port, EVERY_MS);
    let looks = 0;
    const onLook = (): void => {
      looks += 1;
    };
    const stop = sampler.add({ lock: { space: "lock", name: "cart:7" }, onLook });
    const heap: number[] = [];
    const begunMs = port.nowMs;
    for (let minute = 0; minute <= 60; minute += 1) {
      for (let wanted = looks + 60_000 / EVERY_MS; looks < wanted; ) {
        const before = looks;
        await port.advance(EVERY_MS);
        // The clock stands still during a look.
        while (looks === before) await settled();
        await settled();
      }
      if (minute % 10 !== 0) continue;
      collect();
      heap.push(process.memoryUsage().heapUsed / MIB);
    }
    stop();
    const figures = heap.map((mib) => mib.toFixed(1)).join(", ");
    const minutes = Math.round((port.nowMs - begunMs) / 60_000);
    say(`heap, every ten minutes of ${minutes}, after ${looks} looks`, `${figures} MiB`);
    say(
      "changes kept, points kept",
      `${sampler.history.size}, ${sampler.timeline.since(0).length}`,
    );
    expect(heap.at(-1)).toBeLessThan((heap[1] ?? 0) * 1.2);
    expect(sampler.history.size).toBeLessThanOrEqual(20_000);
  });
});

/** Half of the locks change hands between two looks; each minute a tenth of the names is new. */
class ChangingLocks {
  readonly #port: ManualPort;

  constructor(port: ManualPort) {
    this.#port = port;
  }

  async *list({ space }: { readonly space: string }): AsyncGenerator<LockView, void> {
    for (let index = 0; space === "lock" && index < LOCKS; index += 1) yield this.#view(index);
  }

  async inspect(name: string): Promise<LockView> {
    return { ...this.#view(7), name };
  }

  #view(index: number): LockView {
    const second = Math.floor(this.#port.nowMs / 1_000);
    const age = (second + index) % 10;
    const token = BigInt((second - age) * LOCKS + index);
    const name = index % 10 === 0 ? `job:${Math.floor(second / 60)}:${index}` : `cart:${index}`;
    const common = { mode: "exclusive", weight: 1, limit: null, meta: metaOf(index) } as const;
    const holder = { ...common, token, heldMs: age * 1_000, remainingMs: 20_000 };
    const waiters = index < WAITERS ? [{ ...common, waitedMs: index }] : [];
    return { space: "lock", name, holders: [holder], waiters, mark: null };
  }
}
