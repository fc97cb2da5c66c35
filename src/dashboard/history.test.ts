import { describe, expect, it } from "vitest";
import type { LockView } from "../contract/store.js";
import { History } from "./history.js";

const AT = 1_700_000_000_000;

function held(name: string, token: bigint, remainingMs: number, host = "web1"): LockView {
  const holder = {
    token,
    mode: "exclusive",
    weight: 1,
    limit: null,
    meta: { label: "worker", host },
    heldMs: 0,
    remainingMs,
  } as const;
  return { space: "lock", name, holders: [holder], waiters: [], mark: null };
}

/** One look at these locks. */
function see(history: History, views: LockView[], nowMs: number, at: number, isPartial = false) {
  const look = history.begin();
  for (const view of views) look.note(view);
  return history.finish(look, nowMs, at, isPartial);
}

const lock = { space: "lock", name: "a" } as const;

describe("history", () => {
  it("tells grants and ends, and an expiry from a release", () => {
    const history = new History();
    see(history, [held("a", 1n, 900)], 1_000, AT);
    expect(history.changesOf(lock)).toEqual([]);
    // 500 ms later 400 ms were left: the holder has given it back.
    const second = see(history, [held("a", 2n, 900, "web2")], 1_500, AT + 500);
    expect(second).toEqual({ grants: 1, expired: 0, late: 0 });
    // 1,000 ms later nothing was left.
    expect(see(history, [], 2_500, AT + 1_500)).toMatchObject({ expired: 1 });
    expect(history.changesOf(lock)).toEqual([
      { at: AT + 1_500, what: "expired", token: "2", who: "worker on web2" },
      { at: AT + 500, what: "granted", token: "2", who: "worker on web2" },
      { at: AT + 500, what: "ended", token: "1", who: "worker on web1" },
    ]);
  });

  it("knows a late renewal by the longest time that was left", () => {
    const history = new History();
    see(history, [held("a", 1n, 3_000)], 0, AT);
    expect(see(history, [held("a", 1n, 1_600)], 1_400, AT).late).toBe(0);
    expect(see(history, [held("a", 1n, 1_400)], 1_600, AT).late).toBe(1);
    expect([...history.begin().note(held("a", 1n, 1_300))]).toEqual([1n]);
    expect(see(history, [held("a", 1n, 3_000)], 1_700, AT).late).toBe(0);
  });

  it("concludes nothing from locks that a partial look lacks", () => {
    const history = new History();
    see(history, [held("a", 1n, 100), held("b", 2n, 100)], 0, AT);
    const partial = see(history, [held("b", 2n, 100)], 10_000, AT, true);
    expect(partial).toEqual({ grants: 0, expired: 0, late: 0 });
    const next = see(history, [held("a", 1n, 100), held("b", 2n, 100)], 10_100, AT);
    expect(next.grants).toBe(0);
    expect(history.changesOf(lock)).toEqual([]);
  });

  it("does not compare looks that are far apart", () => {
    const history = new History();
    see(history, [held("a", 1n, 100)], 0, AT);
    history.forgetLook();
    expect(see(history, [], 90_000, AT).expired).toBe(0);
  });

  it("keeps the last changes of each lock, and of the locks that changed last", () => {
    const history = new History();
    for (let token = 1n; token <= 100n; token += 1n) {
      see(history, [held("a", token, 900)], Number(token), AT);
    }
    expect(history.changesOf(lock)).toHaveLength(20);
    expect(history.changesOf(lock)[0]).toMatchObject({ token: "100" });
    for (let round = 0; round < 6; round += 1) {
      const some = Array.from({ length: 5_000 }, (_, index) =>
        held(`b${round}-${index}`, BigInt(index), 900),
      );
      see(history, some, 1_000 + round, AT);
    }
    expect(history.size).toBeLessThanOrEqual(20_000);
    expect(history.changesOf(lock)).toEqual([]);
    expect(history.changesOf({ space: "lock", name: "b5-0" })).toHaveLength(1);
  });
});
