import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Grant, Store } from "../store.js";
import { MemorySpace, memoryStore } from "../stores/memory/index.js";
import { altered } from "./altered.js";
import type { Behaviour } from "./behaviour.js";
import { behaviours } from "./behaviours.js";
import { abortInFlight } from "./cases/abort-in-flight.js";
import { abortWaiting } from "./cases/abort-waiting.js";
import { exclusion } from "./cases/exclusion.js";
import { fixedLease } from "./cases/fixed-lease.js";
import { inspect } from "./cases/inspect.js";
import { list } from "./cases/list.js";
import { lossInTime } from "./cases/loss-in-time.js";
import { namesApart } from "./cases/names-apart.js";
import { onceDone } from "./cases/once-done.js";
import { oneName } from "./cases/one-name.js";
import { readersShare } from "./cases/readers-share.js";
import { releaseTwiceInStore } from "./cases/release-twice-in-store.js";
import { renewal } from "./cases/renewal.js";
import { revoke } from "./cases/revoke.js";
import { semaphoreLimit } from "./cases/semaphore-limit.js";
import { tokens } from "./cases/tokens.js";
import { transfer } from "./cases/transfer.js";
import { tryAcquire } from "./cases/try-acquire.js";
import { conformance } from "./conformance.js";
import type { Harness } from "./harness.js";

/** A memory store, changed by `alter`. */
function harnessOf(alter: (store: Store) => Partial<Store>): Harness {
  const spaces = new Map<string, MemorySpace>();
  const spaceOf = (namespace: string): MemorySpace => {
    const space = spaces.get(namespace) ?? new MemorySpace();
    spaces.set(namespace, space);
    return space;
  };
  return {
    traits: memoryStore().traits,
    ttlMs: 200,
    async open(namespace) {
      const store = memoryStore({ space: spaceOf(namespace) });
      return altered(store, alter(store));
    },
    leftovers: async (namespace) =>
      spaceOf(namespace)
        .list("")
        .map(({ key }) => key),
  };
}

async function outcomeOf(behaviour: Behaviour, harness: Harness): Promise<string> {
  const found = conformance(harness).find(({ title }) => title === behaviour.title);
  return (
    found?.run().then(
      () => "passed",
      () => "failed",
    ) ?? "not found"
  );
}

let lastToken = 1_000n;

/** Defects that stores have had, and the behaviours that must notice each of them. */
const DEFECTS: Record<string, { alter(store: Store): Partial<Store>; caughtBy: Behaviour[] }> = {
  "grants to everybody": {
    alter: (store) => ({
      acquire: async (claim) => ({
        type: "granted",
        claim,
        token: ++lastToken,
        span: 1,
        deadlineMs: store.port.clock.nowMs() + claim.ttlMs,
        locator: null,
      }),
    }),
    caughtBy: [tryAcquire, exclusion, semaphoreLimit, oneName, readersShare],
  },
  "takes readers for writers": {
    alter: (store) => ({
      acquire: (claim, wait) => store.acquire({ ...claim, mode: "exclusive", limit: 1e9 }, wait),
    }),
    caughtBy: [semaphoreLimit],
  },
  "ignores limits": {
    alter: (store) => ({
      acquire: (claim, wait) => store.acquire({ ...claim, limit: 1e9 }, wait),
    }),
    caughtBy: [semaphoreLimit],
  },
  "gives old tokens again": {
    alter: (store) => ({
      async acquire(claim, wait) {
        const outcome = await store.acquire(claim, wait);
        return outcome.type === "granted" ? withToken(outcome, 7n) : outcome;
      },
    }),
    caughtBy: [tokens, exclusion],
  },
  "believes too long": {
    alter: (store) => ({
      async acquire(claim, wait) {
        const outcome = await store.acquire(claim, wait);
        if (outcome.type === "granted") outcome.deadlineMs += claim.ttlMs;
        return outcome;
      },
    }),
    caughtBy: [lossInTime],
  },
  "gives up on a lease too early": {
    alter: (store) => ({
      async acquire(claim, wait) {
        const outcome = await store.acquire(claim, wait);
        if (outcome.type === "granted") outcome.deadlineMs -= claim.ttlMs / 2;
        return outcome;
      },
    }),
    caughtBy: [fixedLease],
  },
  "says renewed and does not": {
    alter: () => ({
      renew: async (grants) => grants.map(() => ({ type: "renewed", waiting: false })),
    }),
    caughtBy: [renewal],
  },
  "says released and does not": {
    alter: () => ({ release: async () => true }),
    caughtBy: [tryAcquire],
  },
  "releases twice": {
    alter: (store) => ({ release: (grant, ms) => store.release(grant, ms).then(() => true) }),
    caughtBy: [releaseTwiceInStore],
  },
  "does not hear that a wait ended": {
    alter: (store) => ({
      acquire(claim, wait) {
        const deaf = wait && { ...wait, untilMs: wait.untilMs, ended: false, onEnd: () => {} };
        return store.acquire(claim, deaf && { ...deaf, report: (...args) => wait.report(...args) });
      },
    }),
    caughtBy: [abortWaiting],
  },
  "keeps what was granted after an abort": {
    alter: (store) => ({
      async acquire(claim, wait) {
        const outcome = await store.acquire(claim, null);
        await new Promise((resume) => setTimeout(resume, 2));
        return wait?.ended ? { type: "busy", holder: null, mark: null } : outcome;
      },
    }),
    caughtBy: [abortInFlight],
  },
  "folds the case of names": {
    alter: (store) => ({
      acquire: (claim, wait) => store.acquire({ ...claim, name: claim.name.toLowerCase() }, wait),
    }),
    caughtBy: [namesApart],
  },
  "lists by pattern": {
    alter: (store) => ({
      async *list(space, prefix) {
        const pattern = new RegExp(`^${prefix.replaceAll("*", ".*").replaceAll("?", ".")}`);
        for await (const view of store.list(space, "")) if (pattern.test(view.name)) yield view;
      },
    }),
    caughtBy: [list],
  },
  "revokes whoever holds": {
    alter: (store) => ({
      async revoke(space, name, _, reason) {
        const [holder] = (await store.inspect(space, name)).holders;
        return holder ? store.revoke(space, name, holder.token, reason) : false;
      },
    }),
    caughtBy: [revoke],
  },
  "does not tell the victim": {
    alter: () => ({ onEvent: () => {} }),
    caughtBy: [revoke],
  },
  "shows nobody's meta": {
    alter: (store) => ({ acquire: (claim, wait) => store.acquire({ ...claim, meta: {} }, wait) }),
    caughtBy: [inspect, onceDone],
  },
  "forgets the mark": {
    alter: (store) => ({ release: (grant, ms) => store.release(grant, ms) }),
    caughtBy: [onceDone],
  },
  "resumes under a new token": {
    alter: (store) => ({
      async resume(claim, token, locator) {
        const grant = await store.resume(claim, token, locator);
        return grant && withToken(grant, grant.token + 1n);
      },
    }),
    caughtBy: [transfer],
  },
};

function withToken(grant: Grant, token: bigint): Grant {
  return new Proxy(grant, {
    get: (target, property) => (property === "token" ? token : Reflect.get(target, property)),
  });
}

describe("a store that", () => {
  const cases = Object.entries(DEFECTS).flatMap(([defect, { alter, caughtBy }]) =>
    caughtBy.map((behaviour) => ({ defect, title: behaviour.title, alter, behaviour })),
  );

  it.concurrent.each(cases)(
    "$defect is caught by: $title",
    async ({ alter, behaviour }) => {
      expect(await outcomeOf(behaviour, harnessOf(alter))).toBe("failed");
    },
    30_000,
  );
});

describe("the cases", () => {
  it("are one to a file, and none is forgotten", () => {
    const kebab = (name: string): string => name.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`);
    const files = readdirSync(new URL("cases", import.meta.url));
    expect(files).toHaveLength(behaviours.length);
    expect(files.every((file) => file === kebab(file))).toBe(true);
  });

  it("have titles of their own", () => {
    expect(new Set(behaviours.map(({ title }) => title)).size).toBe(behaviours.length);
  });

  it("are skipped with a reason, and only then", () => {
    const cases = conformance(harnessOf(() => ({})));
    const skipped = cases.filter(({ skip }) => skip !== null);
    expect(skipped.every(({ skip }) => skip !== "")).toBe(true);
    expect(cases.find(({ title }) => title === exclusion.title)?.skip).toBeNull();
  });

  it("can be exempted one by one, by their titles", () => {
    const harness = harnessOf(() => ({}));
    const exempt = { [exclusion.title]: "it is slow" };
    const [first] = conformance({ ...harness, exempt });
    expect(first).toMatchObject({ title: exclusion.title, skip: "it is slow" });
    expect(() => conformance({ ...harness, exempt: { nonsense: "?" } })).toThrow(/nonsense/);
  });

  it("demand to know how to make a child, of a store for more than one process", () => {
    const harness = harnessOf(() => ({}));
    const traits = { ...harness.traits, scope: "machine" } as const;
    expect(() => conformance({ ...harness, traits })).toThrow(/child/);
  });
});
