import { beforeEach, describe, expect, it, vi } from "vitest";
import { claimOf } from "../../test/fixtures/ledger-server.js";
import { ManualRuntime } from "../../test/fixtures/manual-runtime.js";
import { ScriptedStore } from "../../test/fixtures/scripted-store.js";
import type { Claim, Grant, RenewalTerms } from "../contract/store.js";
import { present } from "../errors/assert.js";
import { InternalError, StoreError } from "../errors/index.js";
import type { GrantUser, HeldGrant } from "./held-grant.js";
import type { HeldLease } from "./lease.js";
import { LeaseRenewer } from "./lease-renewer.js";

const NEVER = new Promise<never>(() => {});
let runtime: ManualRuntime;
let store: ScriptedStore;
let leaseRenewer: LeaseRenewer;
let tokens: bigint;

interface Kept {
  readonly grant: Grant;
  readonly held: HeldGrant;
  readonly onWarning: ReturnType<typeof vi.fn<() => void>>;
  readonly onLost: ReturnType<typeof vi.fn<(reason: string, detail: string) => void>>;
  readonly onRenewal: ReturnType<typeof vi.fn<GrantUser["onRenewal"]>>;
}

function keep(
  given: Partial<Parameters<LeaseRenewer["keep"]>[2]> = {},
  claim: Partial<Claim> = {},
): Kept {
  const options = {
    ttlMs: 30_000,
    renew: true,
    graceMs: 0,
    maxHoldMs: Number.POSITIVE_INFINITY,
    ...given,
  };
  tokens += 1n;
  const name = `n${tokens}`;
  const grant = store.grantFor(claimOf("o", { name, ttlMs: options.ttlMs, ...claim }), tokens);
  const lease = {} as HeldLease;
  const user = { lease, onWarning: vi.fn(), onLost: vi.fn(), onRenewal: vi.fn() };
  const held = present(leaseRenewer.keep(grant, user, options), "a live grant is kept");
  return { grant, held, ...user };
}

beforeEach(() => {
  runtime = new ManualRuntime();
  store = new ScriptedStore(runtime);
  leaseRenewer = new LeaseRenewer(store);
  tokens = 0n;
});

it("keeps a grant once", () => {
  const { grant, held } = keep();
  const options = { ttlMs: 1_000, renew: true, graceMs: 0, maxHoldMs: 1_000 };
  expect(() => leaseRenewer.keep(grant, null, options)).toThrow(InternalError);
  expect(held.isLive).toBe(true);
  leaseRenewer.drop(held);
  expect(leaseRenewer.keep(grant, null, options)?.isLive).toBe(true);
});

describe("a grant that has ended on its way", () => {
  const options = { ttlMs: 1_000, renew: true, graceMs: 0, maxHoldMs: 1_000 };

  it.each([
    ["by its deadline", () => runtime.block(1_000)],
    ["while the machine slept", () => runtime.sleep(1_000)],
    ["by the store", (grant: Grant) => Object.assign(grant, { deadlineMs: 0 })],
  ])("%s is given back", async (_title, end: (grant: Grant) => void) => {
    const grant = store.grantFor(claimOf("o", { ttlMs: 1_000 }), 1n);
    end(grant);
    expect(leaseRenewer.keep(grant, null, options)).toBeNull();
    expect(store.released).toMatchObject([{ grant, withinMs: 5_000 }]);
    expect([grant.listener, leaseRenewer.leases(), runtime.alarms]).toEqual([null, [], 0]);
  });

  it("leaves the grant that it would have replaced alone", () => {
    const older = keep({}, { name: "x" });
    const grant = store.grantFor(claimOf("o", { name: "x" }), tokens + 1n);
    grant.deadlineMs = Number.NEGATIVE_INFINITY;
    expect(leaseRenewer.keep(grant, null, options)).toBeNull();
    expect(leaseRenewer.check(older.held)).toBe(true);
  });
});

describe("renewals", () => {
  it("come every third of the ttl, for as long as it is held", async () => {
    const { onLost, held } = keep();
    await runtime.advance(9_999);
    expect(store.renewed).toHaveLength(0);
    await runtime.advance(290_001);
    expect(store.renewed).toHaveLength(30);
    expect(onLost).not.toHaveBeenCalled();
    leaseRenewer.drop(held);
    await runtime.advance(60_000);
    expect(store.renewed).toHaveLength(30);
  });

  it("of all that is due travel together, at most 1,000 at a time", async () => {
    for (let index = 0; index < 2_500; index += 1) keep();
    await runtime.advance(10_010);
    expect(store.renewed.map((batch) => batch.length)).toEqual([1_000, 1_000, 500]);
    expect(new Set(store.renewed.flat()).size).toBe(2_500);
  });

  it("take along what is due soon after", async () => {
    keep();
    await runtime.advance(900);
    keep();
    await runtime.advance(5_000);
    keep();
    await runtime.advance(4_100);
    expect(store.renewed.map((batch) => batch.length)).toEqual([2]);
  });

  it("are not sent for a fixed lease", async () => {
    const { onLost } = keep({ renew: false });
    await runtime.advance(29_999);
    expect(store.renewed).toEqual([]);
    await runtime.advance(1);
    expect(onLost).toHaveBeenCalledWith("expired", "");
  });

  it("keep no process alive", async () => {
    keep();
    await runtime.advance(15_000);
    expect(runtime.alarms).toBeGreaterThan(0);
    expect(runtime.keepsAlive).toBe(false);
  });
});

describe("a renewal that fails", () => {
  it("is tried again until the deadline, and the lease is not lost before", async () => {
    const { onLost, grant } = keep();
    store.onRenew = () => Promise.reject(new Error("down"));
    await runtime.advance(29_999);
    expect(store.renewed.length).toBeGreaterThan(10);
    expect(onLost).not.toHaveBeenCalled();
    store.onRenew = async (grants) => grants.map((one) => store.extend(one));
    grant.deadlineMs += 1_000;
    await runtime.advance(20_000);
    expect(onLost).not.toHaveBeenCalled();
  });

  it("ends the lease at its deadline, and nothing is sent after it", async () => {
    const { onLost } = keep();
    store.onRenew = () => Promise.reject(new Error("down"));
    await runtime.advance(30_000);
    expect(onLost).toHaveBeenCalledExactlyOnceWith("expired", "");
    const tries = store.renewed.length;
    await runtime.advance(60_000);
    expect(store.renewed).toHaveLength(tries);
    expect(store.released).toHaveLength(1);
  });

  it("by silence is repeated while the first is still under way", async () => {
    keep();
    store.onRenew = () => NEVER;
    await runtime.advance(29_999);
    expect(store.renewed.length).toBeGreaterThanOrEqual(4);
  });

  it("by silence is reported at each repetition, long before the loss", async () => {
    const { onRenewal, onLost, grant } = keep();
    store.onRenew = () => NEVER;
    await runtime.advance(10_000);
    expect(onRenewal).not.toHaveBeenCalled();
    await runtime.advance(5_000);
    const error = { message: "The store has not answered the renewal for 5000 ms." };
    const [[first] = []] = onRenewal.mock.calls;
    expect(first).toMatchObject({ outcome: "failed", error, atMs: 16_000 });
    expect(first?.afterMs).toBe(grant.deadlineMs);
    await runtime.advance(14_999);
    expect(onLost).not.toHaveBeenCalled();
    expect(onRenewal).toHaveBeenCalledTimes(store.renewed.length - 1);
    await runtime.advance(1);
    expect(onLost).toHaveBeenCalledOnce();
    expect(onRenewal).toHaveBeenCalledTimes(store.renewed.length);
  });

  it("by silence is reported with the reason, for which the store looks once", async () => {
    const { onRenewal } = keep();
    const other = keep();
    store.onRenew = () => NEVER;
    const reason = new Error("connect ECONNREFUSED");
    store.explain = vi.fn(async ({ message, outcome }) => {
      return new StoreError(`${message} No server at a:1.`, { outcome, cause: reason });
    });
    await runtime.advance(15_000);
    for (const heard of [onRenewal, other.onRenewal]) {
      const [[first] = []] = heard.mock.calls;
      expect(String(first?.error)).toContain("for 5000 ms. No server at a:1.");
    }
    expect(store.explain).toHaveBeenCalledOnce();
  });

  it("by silence is reported in time if no reason is found", async () => {
    const { onRenewal, onLost } = keep();
    store.onRenew = () => NEVER;
    store.explain = () => NEVER;
    await runtime.advance(15_000);
    expect(onRenewal).not.toHaveBeenCalled();
    expect(runtime.keepsAlive).toBe(false);
    await runtime.advance(101);
    expect(onRenewal).toHaveBeenCalledOnce();
    await runtime.advance(14_899);
    expect(onLost).toHaveBeenCalledOnce();
    expect(onRenewal.mock.lastCall?.[0].outcome).toBe("failed");
  });

  it("by silence is not reported again when its request fails at last", async () => {
    const { onRenewal } = keep();
    let fail = (_: Error): void => {};
    store.onRenew = () => {
      store.onRenew = () => NEVER;
      return new Promise((_, reject) => {
        fail = reject;
      });
    };
    await runtime.advance(15_000);
    expect(onRenewal).toHaveBeenCalledOnce();
    fail(new Error("timeout"));
    await runtime.advance(0);
    expect(onRenewal).toHaveBeenCalledOnce();
  });

  it("by silence is not reported where the event loop was blocked", async () => {
    const { onRenewal } = keep();
    store.onRenew = () => NEVER;
    await runtime.advance(10_000);
    runtime.block(8_000);
    await runtime.advance(0);
    expect(store.renewed).toHaveLength(2);
    expect(onRenewal).not.toHaveBeenCalled();
  });

  it("counts as one renewal, however many of its copies are answered", async () => {
    const { onRenewal } = keep();
    const answers: (() => void)[] = [];
    store.onRenew = (grants) =>
      new Promise((resolve) => {
        answers.push(() => resolve(grants.map((one) => store.extend(one))));
      });
    await runtime.advance(25_000);
    expect(answers.length).toBeGreaterThan(2);
    onRenewal.mockClear();
    for (const answer of answers.splice(0)) answer();
    await runtime.advance(0);
    expect(onRenewal).toHaveBeenCalledOnce();
    expect(onRenewal.mock.calls[0]?.[0].outcome).toBe("renewed");
    // The last copy was sent after 23.7 s, and the next renewal is due 10 s later.
    await runtime.advance(8_500);
    expect(answers).toHaveLength(0);
    await runtime.advance(500);
    expect(answers).toHaveLength(1);
  });

  it("after a copy was answered says nothing, and is not sent again", async () => {
    const { onRenewal } = keep();
    let fail = (_: Error): void => {};
    store.onRenew = () => {
      store.onRenew = async (grants) => grants.map((one) => store.extend(one));
      return new Promise((_, reject) => {
        fail = reject;
      });
    };
    await runtime.advance(15_000);
    onRenewal.mockClear();
    fail(new Error("timeout"));
    await runtime.advance(9_000);
    expect(onRenewal).not.toHaveBeenCalled();
    expect(store.renewed).toHaveLength(2);
  });

  it("by silence is repeated within a quarter of the time left", async () => {
    const { onLost } = keep();
    store.onRenew = () => {
      store.onRenew = async (grants) => grants.map((one) => store.extend(one));
      return NEVER;
    };
    await runtime.advance(10_000);
    expect(store.renewed).toHaveLength(1);
    await runtime.advance(5_000);
    expect(store.renewed).toHaveLength(2);
    await runtime.advance(25_000);
    expect(onLost).not.toHaveBeenCalled();
  });

  it.each([30_000, 600_000])(
    "by silence has more tries before the grace of %i ms",
    async (ttlMs) => {
      const { onWarning } = keep({ ttlMs, graceMs: ttlMs / 2 - 1 });
      store.onRenew = () => NEVER;
      await runtime.advance(ttlMs / 2 + 1);
      expect(onWarning).toHaveBeenCalled();
      expect(store.renewed.length).toBeGreaterThanOrEqual(4);
      expect(store.renewed.map((batch) => batch.length)).toEqual(store.renewed.map(() => 1));
    },
  );

  it("for one lease is a success for the other leases of its batch", async () => {
    const [bad, good] = [keep(), keep()];
    store.onRenew = async (grants) =>
      grants.map((one) =>
        one === bad.grant ? { type: "unknown", error: new Error("odd") } : store.extend(one),
      );
    await runtime.advance(31_000);
    expect(bad.onLost).toHaveBeenCalled();
    expect(good.onLost).not.toHaveBeenCalled();
  });

  it("cuts a reason that another client made too long", async () => {
    const { onLost } = keep();
    store.onRenew = async (grants) => {
      return grants.map((one) => store.end(one, "revoked", "x".repeat(5_000_000)));
    };
    await runtime.advance(10_000);
    expect(onLost).toHaveBeenCalledExactlyOnceWith("revoked", "x".repeat(1_024));
  });

  it("because the grant is gone ends the lease at once, with the store's word", async () => {
    const { onLost } = keep();
    store.onRenew = async (grants) => grants.map((one) => store.end(one, "revoked", "stuck"));
    await runtime.advance(10_000);
    expect(onLost).toHaveBeenCalledExactlyOnceWith("revoked", "stuck");
  });

  it("because the grant is gone ends the lease of a store that ends no grants", async () => {
    const { onLost, grant } = keep();
    store.onRenew = async () => [{ type: "ended" }];
    await runtime.advance(10_000);
    expect(onLost).toHaveBeenCalledExactlyOnceWith("missing", "");
    expect(grant.loss).toMatchObject({ reason: "missing" });
  });
});

describe("a grant whose deadline has passed", () => {
  it("has ended for its store, too", async () => {
    const { grant } = keep({ renew: false });
    await runtime.advance(30_000);
    expect(grant.loss).toEqual({ reason: "expired", detail: "" });
  });

  it("has ended even if its store made it so that it tells nobody", async () => {
    const { grant, held, onLost } = keep({ renew: false });
    Object.assign(grant, { end: () => {} });
    await runtime.advance(30_000);
    expect(leaseRenewer.check(held)).toBe(false);
    expect(onLost).toHaveBeenCalledExactlyOnceWith("expired", "");
  });
});

describe("a process that did not run", () => {
  it.each(["block", "sleep"] as const)(
    "ends what is over after a %s, and renews the rest",
    async (how) => {
      const over = keep({ ttlMs: 1_000 });
      const alive = keep({ ttlMs: 60_000 });
      runtime[how](30_000);
      await runtime.advance(400);
      expect(over.onLost).toHaveBeenCalledWith("expired", "");
      expect(store.renewed.flat()).not.toContain(over.grant);
      expect(alive.onLost).not.toHaveBeenCalled();
      await runtime.advance(100);
      expect(store.renewed.flat()).toContain(alive.grant);
    },
  );

  it("is told the truth by the first check, before any timer", () => {
    const { held, onLost } = keep({ ttlMs: 1_000 });
    expect(leaseRenewer.check(held)).toBe(true);
    runtime.block(1_000);
    expect(leaseRenewer.check(held)).toBe(false);
    expect(onLost).toHaveBeenCalledExactlyOnceWith("expired", "");
  });
});

describe("a grant that the store ends", () => {
  it("ends a lease at once, and no other", () => {
    const [one, other] = [keep(), keep()];
    store.tell(one.grant, "revoked", "stuck");
    expect(one.onLost).toHaveBeenCalledExactlyOnceWith("revoked", "stuck");
    expect(other.onLost).not.toHaveBeenCalled();
    store.tell(one.grant, "revoked", "again");
    expect(one.onLost).toHaveBeenCalledTimes(1);
  });

  it("is not kept after that", () => {
    const grant = store.grantFor(claimOf("o", { name: "x", ttlMs: 30_000 }), 1n);
    store.tell(grant, "revoked", "stuck");
    const options = { ttlMs: 30_000, renew: true, graceMs: 0, maxHoldMs: 60_000 };
    expect(leaseRenewer.keep(grant, null, options)).toBeNull();
    expect(store.released).toMatchObject([{ grant }]);
  });

  it("is not kept if it was ended because it ends an older one", () => {
    const older = keep({}, { name: "x" });
    const grant = store.grantFor(claimOf("o", { name: "x", ttlMs: 30_000 }), tokens + 1n);
    older.onLost.mockImplementation(() => store.tell(grant, "revoked", "stuck"));
    const options = { ttlMs: 30_000, renew: true, graceMs: 0, maxHoldMs: 60_000 };
    expect(leaseRenewer.keep(grant, null, options)).toBeNull();
    expect(store.released).toMatchObject([{ grant: older.grant }, { grant }]);
    expect(leaseRenewer.leases()).toEqual([]);
  });

  it("during its renewal is not revived by the answer", async () => {
    const { grant, held, onLost, onRenewal } = keep();
    let answer = (): void => {};
    store.onRenew = (grants) =>
      new Promise((resolve) => {
        answer = () => resolve(grants.map((one) => store.extend(one)));
      });
    await runtime.advance(10_000);
    store.tell(grant, "revoked", "stuck");
    answer();
    await runtime.advance(20_000);
    expect(leaseRenewer.check(held)).toBe(false);
    expect(onLost).toHaveBeenCalledExactlyOnceWith("revoked", "stuck");
    expect(onRenewal).not.toHaveBeenCalled();
    expect(store.renewed).toHaveLength(1);
  });

  it("after its release is told to nobody", () => {
    const { grant, held, onLost } = keep();
    leaseRenewer.drop(held);
    store.tell(grant, "revoked", "stuck");
    expect(onLost).not.toHaveBeenCalled();
  });

  it("is told to its user by a store whose release throws at once, too", () => {
    const { grant, onLost } = keep();
    store.onRelease = () => {
      throw new Error("closed");
    };
    store.tell(grant, "revoked", "stuck");
    expect(onLost).toHaveBeenCalledExactlyOnceWith("revoked", "stuck");
  });
});

describe("a newer grant of the same name", () => {
  it.each(["exclusive", "shared"] as const)("that is %s ends an exclusive grant", (mode) => {
    const older = keep({}, { name: "x" });
    const newer = keep({}, { name: "x", mode });
    expect(older.onLost).toHaveBeenCalledExactlyOnceWith("replaced", "");
    expect([older.held.isLive, newer.held.isLive]).toEqual([false, true]);
  });

  it("ends a shared grant only if it is exclusive itself", () => {
    const shared = keep({}, { name: "x", mode: "shared" });
    const other = keep({}, { name: "x", mode: "shared" });
    expect([shared.held.isLive, other.held.isLive]).toEqual([true, true]);
    keep({}, { name: "x" });
    for (const { onLost } of [shared, other]) {
      expect(onLost).toHaveBeenCalledExactlyOnceWith("replaced", "");
    }
  });

  it("ends a shared grant after the newest of them was given back", () => {
    const held = [1, 2, 3].map(() => keep({}, { name: "x", mode: "shared" }));
    leaseRenewer.drop(held[2]?.held as HeldGrant);
    leaseRenewer.drop(held[0]?.held as HeldGrant);
    keep({}, { name: "x" });
    expect(held[1]?.onLost).toHaveBeenCalledExactlyOnceWith("replaced", "");
  });

  it("ends a grant whose permits, with its own, exceed the limit", () => {
    const permits = (weight: number, limit: number): Partial<Claim> => {
      return { name: "x", mode: "shared", weight, limit };
    };
    const [two, one] = [keep({}, permits(2, 3)), keep({}, permits(1, 3))];
    keep({}, permits(2, 3));
    expect([two.held.isLive, one.held.isLive]).toEqual([false, true]);
    keep({}, permits(1, 1));
    expect(one.held.isLive).toBe(false);
  });

  it("leaves a grant in another space alone", () => {
    const election = keep({}, { name: "x", space: "election" });
    keep({}, { name: "x" });
    expect(election.held.isLive).toBe(true);
  });

  it.each(["exclusive", "shared"] as const)(
    "that is %s keeps out an older one that comes late",
    (mode) => {
      tokens = 10n;
      const newer = keep({}, { name: "x", mode });
      const late = store.grantFor(claimOf("o", { name: "x" }), 5n);
      const options = { ttlMs: 30_000, renew: true, graceMs: 0, maxHoldMs: 30_000 };
      expect(leaseRenewer.keep(late, null, options)).toBeNull();
      expect(store.released).toMatchObject([{ grant: late }]);
      expect(leaseRenewer.check(newer.held)).toBe(true);
      keep({}, { name: "x" });
      expect(newer.onLost).toHaveBeenCalledExactlyOnceWith("replaced", "");
    },
  );

  it("that is shared lets in an older one that is shared, too", () => {
    tokens = 10n;
    const newer = keep({}, { name: "x", mode: "shared" });
    tokens = 5n;
    const late = keep({}, { name: "x", mode: "shared" });
    expect([leaseRenewer.check(late.held), leaseRenewer.check(newer.held)]).toEqual([true, true]);
    tokens = 20n;
    keep({}, { name: "x" });
    expect(newer.onLost).toHaveBeenCalledExactlyOnceWith("replaced", "");
  });

  it("says that an older grant has expired, if it has", () => {
    const older = keep({ ttlMs: 1_000, renew: false }, { name: "x" });
    runtime.block(2_000);
    keep({}, { name: "x" });
    expect(older.onLost).toHaveBeenCalledExactlyOnceWith("expired", "");
  });
});

describe("maxHoldMs", () => {
  it("ends the lease, whatever the renewals say, and gives it back", async () => {
    const { onLost, grant } = keep({ maxHoldMs: 45_000 });
    await runtime.advance(44_999);
    expect(onLost).not.toHaveBeenCalled();
    await runtime.advance(1);
    expect(onLost).toHaveBeenCalledExactlyOnceWith("max_hold", "");
    expect(store.released.map((release) => release.grant)).toEqual([grant]);
  });
});

describe("graceMs", () => {
  it("warns that long before the deadline, and renews no more", async () => {
    const { onLost, onWarning } = keep({ renew: false, graceMs: 5_000 });
    await runtime.advance(24_999);
    expect(onWarning).not.toHaveBeenCalled();
    await runtime.advance(1);
    expect(onWarning).toHaveBeenCalledTimes(1);
    await runtime.advance(4_999);
    expect(onLost).not.toHaveBeenCalled();
    await runtime.advance(1);
    expect(onLost).toHaveBeenCalledExactlyOnceWith("expired", "");
    expect(onWarning).toHaveBeenCalledTimes(1);
  });

  it("warns before maxHoldMs, too", async () => {
    const { onWarning } = keep({ graceMs: 5_000, maxHoldMs: 60_000 });
    await runtime.advance(54_999);
    expect(onWarning).not.toHaveBeenCalled();
    await runtime.advance(1);
    expect(onWarning).toHaveBeenCalledTimes(1);
  });

  it("does not warn while renewals succeed", async () => {
    const { onWarning } = keep({ graceMs: 14_000 });
    await runtime.advance(600_000);
    expect(onWarning).not.toHaveBeenCalled();
  });
});

describe("a detached grant", () => {
  it("is neither renewed nor given back, only told of its end", async () => {
    const [detached, ...others] = [keep(), keep(), keep()];
    let answer: () => void = () => {};
    store.onRenew = (grants) =>
      new Promise((resolve) => {
        answer = () => resolve(grants.map((one) => store.extend(one)));
      });
    await runtime.advance(10_000);
    if (detached) leaseRenewer.detach(detached.held);
    expect(store.detached).toEqual([detached?.grant]);
    answer();
    store.onRenew = async (grants) => grants.map((one) => store.extend(one));
    await runtime.advance(120_000);
    for (const { onLost } of others) expect(onLost).not.toHaveBeenCalled();
    expect(detached?.onLost).toHaveBeenCalledWith("expired", "");
    expect(store.released).toEqual([]);
    expect(store.renewed.slice(1).flat()).not.toContain(detached?.grant);
    expect(leaseRenewer.leases()).toHaveLength(2);
  });
});

describe("with a renewer", () => {
  let terms: RenewalTerms[];
  let known: (() => void) | undefined;

  beforeEach(() => {
    terms = [];
    known = undefined;
    store.renewer = {
      keep: (_, kept) => void terms.push(kept),
      catchUp: () => known?.(),
    };
  });

  it("sends no renewals, and goes by the deadlines that the renewer moves", async () => {
    const { grant, held, onLost } = keep({ maxHoldMs: 3_600_000 });
    const endMs = runtime.nowMs + 3_600_000;
    expect(terms).toEqual([{ ttlMs: 30_000, renew: true, graceMs: 0, endMs }]);
    for (let renewal = 0; renewal < 10; renewal += 1) {
      await runtime.advance(20_000);
      store.extend(grant);
    }
    expect(store.renewed).toEqual([]);
    expect(leaseRenewer.check(held)).toBe(true);
    await runtime.advance(30_000);
    expect(onLost).toHaveBeenCalledWith("expired", "");
  });

  it("tells the renewer that the grace has begun, and that a ttl has changed", async () => {
    const { held, onWarning } = keep({ graceMs: 5_000 });
    await leaseRenewer.renew(held, 60_000);
    expect(terms.at(-1)).toMatchObject({ ttlMs: 60_000, renew: true });
    await runtime.advance(60_000 - 5_000);
    expect(onWarning).toHaveBeenCalledOnce();
    expect(terms.at(-1)).toMatchObject({ renew: false });
    leaseRenewer.setTtl(held, 60_000);
    expect(terms).toHaveLength(3);
  });

  it("sends no renewal after one that a caller asked for and that failed", async () => {
    const { held } = keep();
    store.onRenew = () => Promise.reject(new Error("away"));
    expect(await leaseRenewer.renew(held, 30_000)).toMatchObject({ type: "unknown" });
    await runtime.advance(20_000);
    expect(store.renewed).toHaveLength(1);
  });

  it("hears of a loss in the first look, with the reason of the store", () => {
    const { grant, held, onLost } = keep();
    known = () => store.tell(grant, "revoked", "stuck");
    expect(leaseRenewer.check(held)).toBe(false);
    expect(onLost).toHaveBeenCalledOnce();
    expect(onLost).toHaveBeenCalledWith("revoked", "stuck");
  });

  it("hears of a loss in its own timer, with the reason of the store", async () => {
    const { grant, onLost } = keep();
    await runtime.advance(29_000);
    known = () => store.tell(grant, "replaced");
    await runtime.advance(2_000);
    expect(onLost).toHaveBeenCalledOnce();
    expect(onLost).toHaveBeenCalledWith("replaced", "");
  });

  it("passes on what the renewer says of renewals", () => {
    const { grant, held, onRenewal } = keep();
    const note = { outcome: "renewed", atMs: 1, beforeMs: 2, afterMs: 3 } as const;
    store.tellRenewal(grant, note);
    expect(onRenewal).toHaveBeenCalledWith(expect.objectContaining(note));
    leaseRenewer.drop(held);
    store.tellRenewal(grant, note);
    expect(onRenewal).toHaveBeenCalledOnce();
  });
});
