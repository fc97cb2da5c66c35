/**
 * The dashboard with 10,000 locks and 1,000 waiters, on demand: `npm run dashboard:load`. It prints
 * how long a browser takes for the first paint and for each update, how busy the process that
 * serves is, and how much memory 80 minutes of change take, with a clock that the test moves.
 */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { CDPSession, Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import type { Examination } from "../../src/contract/examination.js";
import type { LockView } from "../../src/contract/store.js";
import { Desk } from "../../src/dashboard/desk.js";
import type { ShownLocks } from "../../src/dashboard/index.js";
import { answerNode } from "../../src/dashboard/node-answer.js";
import { checkedOptions } from "../../src/dashboard/options.js";
import type { ListOptions } from "../../src/index.js";
import { ManualRuntime, settled } from "../fixtures/manual-runtime.js";
import { waitUntil } from "../servers/wait-until.js";
import { findChromium, startChromium } from "./chromium.js";
import { Stage } from "./stage.js";

const LOCKS = 10_000;
const WAITERS = 1_000;
const CONTENDED = 50;
const WATCH_MS = 30_000;
const EVERY_MS = 10_000;
/** The charts have all their points after an hour: from then on nothing grows. */
const MEASURED_MINUTES = [5, 30, 60, 70, 80];
const FULL = 2;
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
    expect(updates).toBeGreaterThan(0);
  });

  it.skipIf(!findChromium())(
    "takes a bounded memory over 80 minutes of change, in the server and in the browser",
    { timeout: 1_200_000 },
    async () => {
      const runtime = new ManualRuntime();
      const locks = new ChangingLocks(runtime);
      await using served = await Served.start(locks, runtime);
      const browser = await startChromium(findChromium() ?? "");
      const pages = await Promise.all(
        ["#/", "#/lock/lock/cart%3A7"].map(async (address) => {
          const page = await browser.newPage({ viewport: { width: 1_280, height: 900 } });
          await page.goto(`${served.url}${address}`);
          return page;
        }),
      );
      const sessions = await Promise.all(
        pages.map(async (page) => {
          const session = await page.context().newCDPSession(page);
          await session.send("Performance.enable");
          return session;
        }),
      );
      const measure = async (minute: number): Promise<Sizes> => {
        collectGarbage();
        const server = process.memoryUsage().heapUsed / MIB;
        const inBrowser = await Promise.all(sessions.map(browserSizes));
        const [list = NO_SIZE, lock = NO_SIZE] = inBrowser;
        const both = inBrowser.map(({ mib, nodes }) => `${mib.toFixed(1)} MiB, ${nodes} nodes`);
        say(`minute ${minute}`, `server ${server.toFixed(1)} MiB; pages ${both.join("; ")}`);
        return { server, list: list.mib, lock: lock.mib, nodes: list.nodes + lock.nodes };
      };
      const sizes: Sizes[] = [];
      for (const minute of MEASURED_MINUTES) {
        while (runtime.nowMs < minute * 60_000) await nextLook(locks, runtime);
        // A page that connects anew misses looks; one that is slow is waited for.
        const isShown = await Promise.all(pages.map((page) => isUpToDate(page, runtime)));
        expect(isShown).toEqual([true, true]);
        sizes.push(await measure(minute));
      }
      await browser.close();
      const full = sizes[FULL];
      for (const part of ["server", "list", "lock", "nodes"] as const) {
        for (const size of sizes.slice(FULL)) {
          expect(size[part]).toBeLessThan((full?.[part] ?? 0) * 1.1);
        }
      }
    },
  );
});

/** The memory after garbage was collected, in MiB, and the nodes of both pages. */
interface Sizes {
  readonly server: number;
  readonly list: number;
  readonly lock: number;
  readonly nodes: number;
}

const NO_SIZE = { mib: 0, nodes: 0 };

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

async function browserSizes(session: CDPSession): Promise<typeof NO_SIZE> {
  await session.send("HeapProfiler.collectGarbage");
  const { metrics } = await session.send("Performance.getMetrics");
  const value = (wanted: string): number => metrics.find(({ name }) => name === wanted)?.value ?? 0;
  return { mib: value("JSHeapUsedSize") / MIB, nodes: value("Nodes") };
}

/** Moves the time to the end of the next look. It stands still during the look. */
async function nextLook(locks: ChangingLocks, runtime: ManualRuntime): Promise<void> {
  const before = locks.looks;
  const hasLooked = async (): Promise<boolean> => {
    if (locks.looks > before) return true;
    if (!locks.isListed) await runtime.advance(EVERY_MS);
    return false;
  };
  await waitUntil(hasLooked, { what: "a look", timeoutMs: 60_000, everyMs: 1 });
  for (let turn = 0; turn < 5; turn += 1) await settled();
}

/** Whether the page shows the look of this time. */
async function isUpToDate(page: Page, runtime: ManualRuntime): Promise<boolean> {
  const time = new Date(runtime.clock.wallUs() / 1_000).toTimeString().slice(0, 8);
  const wait = page.locator(".live", { hasText: time }).waitFor({ timeout: 60_000 });
  return wait.then(
    () => true,
    () => false,
  );
}

/** A dashboard whose time a test moves, at a server of its own. */
class Served implements AsyncDisposable {
  readonly url: string;
  readonly #desk: Desk;
  readonly #server: Server;

  private constructor(url: string, desk: Desk, server: Server) {
    this.url = url;
    this.#desk = desk;
    this.#server = server;
  }

  static async start(locks: ShownLocks, runtime: ManualRuntime): Promise<Served> {
    const options = checkedOptions({ authorize: () => "load", everyMs: EVERY_MS });
    const desk = new Desk(locks, options, runtime);
    const server = createServer((request, response) => {
      void answerNode((asked) => desk.handle(asked), request, response);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new Served(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, desk, server);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#desk.close();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** All locks change hands between two looks; each minute a tenth of the names is new. */
class ChangingLocks implements ShownLocks {
  /** How often all locks were listed. */
  looks = 0;
  /** They are being listed. */
  isListed = false;
  readonly #runtime: ManualRuntime;

  constructor(runtime: ManualRuntime) {
    this.#runtime = runtime;
  }

  async *list({ space }: ListOptions = {}): AsyncGenerator<LockView, void> {
    if (space !== "lock") return;
    this.isListed = true;
    try {
      for (let index = 0; index < LOCKS; index += 1) yield this.#view(index);
    } finally {
      // A look that takes too long ends before the last lock.
      this.isListed = false;
      this.looks += 1;
    }
  }

  async inspect(name: string): Promise<LockView> {
    return { ...this.#view(7), name };
  }

  held(): [] {
    return [];
  }

  async revoke(): Promise<boolean> {
    return false;
  }

  async examine(): Promise<Examination> {
    return { store: "load", findings: [], failureCases: [] };
  }

  #view(index: number): LockView {
    const second = Math.floor(this.#runtime.nowMs / 1_000);
    const age = (second + index) % 10;
    const token = BigInt((second - age) * LOCKS + index);
    const name = index % 10 === 0 ? `job:${Math.floor(second / 60)}:${index}` : `cart:${index}`;
    const common = { mode: "exclusive", weight: 1, limit: null, meta: metaOf(index) } as const;
    const holder = { ...common, token, heldMs: age * 1_000, remainingMs: 20_000 };
    const waiters = index < WAITERS ? [{ ...common, waitedMs: index }] : [];
    return { space: "lock", name, holders: [holder], waiters, mark: null };
  }
}
