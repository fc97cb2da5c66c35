import { describe, expect, it } from "vitest";
import { ManualRuntime } from "../../test/fixtures/manual-runtime.js";
import type { Holdfast } from "../api/holdfast.js";
import type { LockView } from "../contract/store.js";
import { Sampler, type Viewer } from "./sampler.js";

/** A store that counts how often it is asked, and answers as a test says. */
class CountedLocks {
  lists = 0;
  inspections = 0;
  views: LockView[] = [];
  answer: () => Promise<void> = async () => {};

  async *list({ space }: { space: string }): AsyncGenerator<LockView, void> {
    if (space === "lock") this.lists += 1;
    await this.answer();
    yield* this.views.filter((view) => view.space === space);
  }

  async inspect(name: string): Promise<LockView> {
    this.inspections += 1;
    return this.views.find((view) => view.name === name) ?? free(name);
  }
}

function free(name: string): LockView {
  return { space: "lock", name, holders: [], waiters: [], mark: null };
}

function waitedFor(name: string): LockView {
  const waiter = { mode: "exclusive", weight: 1, limit: null, meta: {}, waitedMs: 5 } as const;
  return { ...free(name), waiters: [waiter] };
}

class CountingViewer implements Viewer {
  looks = 0;
  readonly lock;

  constructor(name?: string) {
    this.lock = name === undefined ? null : ({ space: "lock", name } as const);
  }

  onLook(): void {
    this.looks += 1;
  }
}

function setUp() {
  const runtime = new ManualRuntime();
  const locks = new CountedLocks();
  const sampler = new Sampler(locks as unknown as Holdfast, runtime, 1_000);
  return { runtime, locks, sampler };
}

describe("sampler", () => {
  it("looks once for all viewers, and not at all without one", async () => {
    const { runtime, locks, sampler } = setUp();
    await runtime.advance(10_000);
    expect(locks.lists).toBe(0);
    const viewers = [new CountingViewer(), new CountingViewer(), new CountingViewer()];
    const ends = viewers.map((viewer) => sampler.add(viewer));
    await runtime.advance(10_000);
    expect(locks.lists).toBe(11);
    expect(viewers.map(({ looks }) => looks)).toEqual([11, 11, 11]);
    for (const end of ends) end();
    await runtime.advance(60_000);
    expect(locks.lists).toBe(11);
    expect(runtime.alarms).toBe(0);
  });

  it("looks closely at a lock for as long as it has a viewer", async () => {
    const { runtime, locks, sampler } = setUp();
    locks.views = [waitedFor("a")];
    const end = sampler.add(new CountingViewer("a"));
    const other = sampler.add(new CountingViewer("a"));
    await runtime.advance(0);
    expect(locks.inspections).toBe(1);
    expect(sampler.detailOf({ space: "lock", name: "a" })?.waiterCount).toBe(1);
    end();
    other();
    expect(sampler.detailOf({ space: "lock", name: "a" })).toBeNull();
  });

  it("rests longer than it works, also where locks are opened again and again", async () => {
    const { runtime, locks, sampler } = setUp();
    locks.answer = () => new Promise((resolve) => runtime.timers.after(1_000, resolve));
    sampler.add(new CountingViewer());
    const openings = 200;
    for (let opened = 0; opened < openings; opened += 1) {
      sampler.add(new CountingViewer("a"))();
      await runtime.advance(500);
    }
    // A look takes 3 s, one second for each space.
    const busyMs = locks.lists * 3_000;
    expect(busyMs).toBeLessThan(openings * 500 * 0.4);
    expect(locks.lists).toBeGreaterThan(3);
  });

  it("says that the store is away, since when, and why, and that it is back", async () => {
    const { runtime, locks, sampler } = setUp();
    const viewer = new CountingViewer();
    sampler.add(viewer);
    await runtime.advance(1_000);
    expect(sampler.state.is).toBe("here");
    locks.views = [waitedFor("a")];
    locks.answer = () => Promise.reject(new Error("connection refused"));
    await runtime.advance(3_000);
    expect(sampler.state).toMatchObject({ is: "away", problem: "connection refused" });
    const { since } = sampler.state;
    await runtime.advance(5_000);
    expect(sampler.state.since).toBe(since);
    expect(sampler.snapshot?.totals.locks).toBe(0);
    locks.answer = async () => {};
    await runtime.advance(2_000);
    expect(sampler.state.is).toBe("here");
    expect(sampler.snapshot?.totals).toMatchObject({ locks: 1, waiters: 1, contended: 1 });
  });

  it("gives up a look that does not end, and begins no other beside it", async () => {
    const { runtime, locks, sampler } = setUp();
    let finish = (): void => {};
    locks.answer = () =>
      new Promise((resolve) => {
        finish = resolve;
      });
    sampler.add(new CountingViewer());
    await runtime.advance(120_000);
    expect(sampler.state.is).toBe("away");
    expect(locks.lists).toBe(1);
    locks.answer = async () => {};
    finish();
    await runtime.advance(1_000_000);
    expect(sampler.state.is).toBe("here");
    expect(locks.lists).toBeGreaterThan(1);
  });

  it("takes in a bounded number of locks, and says so", async () => {
    const { runtime, locks, sampler } = setUp();
    locks.views = Array.from({ length: 20_050 }, (_, index) => waitedFor(`n${index}`));
    sampler.add(new CountingViewer());
    await runtime.advance(0);
    await expect.poll(() => sampler.snapshot?.totals.locks).toBe(20_000);
    expect(sampler.snapshot?.totals.isPartial).toBe(true);
  });

  it("shows pages of the locks that a search finds", async () => {
    const { runtime, locks, sampler } = setUp();
    const idle = { ...waitedFor("x"), space: "election" } as const;
    locks.views = Array.from({ length: 250 }, (_, index) => waitedFor(`cart:${index}`));
    locks.views.push(waitedFor("deploy"), idle);
    sampler.add(new CountingViewer());
    await runtime.advance(0);
    const page = (prefix: string, offset: number, space: "election" | null = null) => {
      const { rows, ...rest } = sampler.snapshot?.page({ prefix, space, offset }) ?? { rows: [] };
      return { ...rest, shown: rows.length };
    };
    expect(page("", 0)).toEqual({ offset: 0, total: 252, shown: 100 });
    expect(page("cart:", 200)).toEqual({ offset: 200, total: 250, shown: 50 });
    expect(page("cart:", 99_999)).toEqual({ offset: 200, total: 250, shown: 50 });
    expect(page("deploy", 100)).toEqual({ offset: 0, total: 1, shown: 1 });
    expect(page("", 0, "election")).toEqual({ offset: 0, total: 1, shown: 1 });
    expect(page("nothing", 0)).toEqual({ offset: 0, total: 0, shown: 0 });
  });
});
