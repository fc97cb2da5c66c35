import { readdirSync } from "node:fs";
import { parse } from "node:path";
import { describe, expect, it } from "vitest";
import { isQuick } from "../../test/fixtures/depth.js";
import { ScriptedGrant } from "../../test/fixtures/scripted-store.js";
import type { Grant, Store } from "../contract/store.js";
import { MemorySpace, memoryStore } from "../stores/memory/index.js";
import { altered } from "./altered.js";
import { behaviours } from "./behaviours.js";
import { conformance } from "./conformance.js";
import type { Harness } from "./harness.js";
import type { Behaviour } from "./needs.js";

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

async function outcomeOf(wanted: string, harness: Harness): Promise<string> {
  const found = conformance(harness).find(({ title }) => title === wanted);
  return (
    found?.run().then(
      () => "passed",
      () => "failed",
    ) ?? "not found"
  );
}

let lastToken = 1_000n;

interface Defect {
  alter(store: Store): Partial<Store>;
  readonly caughtBy: readonly string[];
  /** It is caught by a wait of more than ten seconds for what never happens. */
  readonly isSlow?: boolean;
}

/** Defects that stores have had, and the behaviours that must notice each of them. */
const DEFECTS: Record<string, Defect> = {
  "grants every request": {
    alter: (store) => ({
      acquire: async (claim) => {
        lastToken += 1n;
        return new ScriptedGrant(claim, lastToken, store.runtime.clock.nowMs() + claim.ttlMs);
      },
    }),
    caughtBy: [
      "a try takes a free lock and never waits for a held one",
      "100 contenders in one process exclude each other",
      "a semaphore grants weights up to its limit and never above",
      "mutex, read-write lock and semaphore of one name are views of one lock",
      "readers share, a writer is alone",
    ],
  },
  "takes readers for writers": {
    alter: (store) => ({
      acquire: (claim, wait) => store.acquire({ ...claim, mode: "exclusive", limit: 1e9 }, wait),
    }),
    caughtBy: ["a semaphore grants weights up to its limit and never above"],
  },
  "ignores limits": {
    alter: (store) => ({
      acquire: (claim, wait) => store.acquire({ ...claim, limit: 1e9 }, wait),
    }),
    caughtBy: ["a semaphore grants weights up to its limit and never above"],
  },
  "gives old tokens again": {
    alter: (store) => ({
      async acquire(claim, wait) {
        const outcome = await store.acquire(claim, wait);
        return outcome.type === "granted" ? withToken(outcome, 7n) : outcome;
      },
    }),
    caughtBy: [
      "tokens strictly rise with every grant, for every client and every kind of lock",
      "100 contenders in one process exclude each other",
    ],
  },
  "trusts a lease too long": {
    alter: (store) => ({
      async acquire(claim, wait) {
        const outcome = await store.acquire(claim, wait);
        if (outcome.type === "granted") outcome.deadlineMs += claim.ttlMs;
        return outcome;
      },
    }),
    caughtBy: [
      "a holder that cannot renew sees its lease lost before the store grants the lock again",
    ],
  },
  "gives up on a lease too early": {
    alter: (store) => ({
      async acquire(claim, wait) {
        const outcome = await store.acquire(claim, wait);
        if (outcome.type === "granted") outcome.deadlineMs -= claim.ttlMs / 2;
        return outcome;
      },
    }),
    caughtBy: ["with renew: false the lease lasts for its ttl and no longer"],
  },
  "reports renewals that it does not make": {
    alter: () => ({
      renew: async (grants) => grants.map(() => ({ type: "renewed", waiting: false })),
    }),
    caughtBy: ["a lease is renewed for as long as it is held"],
    isSlow: true,
  },
  "reports releases that it does not make": {
    alter: () => ({ release: async () => true }),
    caughtBy: ["a try takes a free lock and never waits for a held one"],
  },
  "releases twice": {
    alter: (store) => ({ release: (grant, ms) => store.release(grant, ms).then(() => true) }),
    caughtBy: ["the store itself ignores a repeated release"],
  },
  "does not hear that a wait ended": {
    alter: (store) => ({
      acquire(claim, wait) {
        const deaf = wait && { ...wait, untilMs: wait.untilMs, ended: false, onEnd: () => {} };
        return store.acquire(claim, deaf && { ...deaf, report: (...args) => wait.report(...args) });
      },
    }),
    caughtBy: ["an abort ends a wait at once and takes the waiter out of the queue"],
  },
  "keeps a grant after an abort": {
    alter: (store) => ({
      async acquire(claim, wait) {
        const outcome = await store.acquire(claim, null);
        await new Promise((resume) => setTimeout(resume, 2));
        return wait?.ended ? { type: "busy", holder: null, mark: null } : outcome;
      },
    }),
    caughtBy: ["an abort while the request is under way leaves nothing held"],
  },
  "folds the case of names": {
    alter: (store) => ({
      acquire: (claim, wait) => store.acquire({ ...claim, name: claim.name.toLowerCase() }, wait),
    }),
    caughtBy: [
      "names that look alike are different locks, and inspect and list return them unchanged",
    ],
  },
  "lists by pattern": {
    alter: (store) => ({
      async *list(space, prefix) {
        const pattern = new RegExp(`^${prefix.replaceAll("*", ".*").replaceAll("?", ".")}`);
        for await (const view of store.list(space, "")) if (pattern.test(view.name)) yield view;
      },
    }),
    caughtBy: ["list yields the locks in use whose names begin with the literal prefix"],
  },
  "revokes any holder": {
    alter: (store) => ({
      async revoke(space, name, _, reason) {
        const [holder] = (await store.inspect(space, name)).holders;
        return holder ? store.revoke(space, name, holder.token, reason) : false;
      },
    }),
    caughtBy: ["revoke ends the lease with the given token only, and its holder is told at once"],
  },
  "does not tell the holder of a revocation": {
    alter: (store) => ({
      async acquire(claim, wait) {
        const result = await store.acquire(claim, wait);
        return result.type === "granted" ? Object.assign(result, { end: () => {} }) : result;
      },
    }),
    caughtBy: ["revoke ends the lease with the given token only, and its holder is told at once"],
    isSlow: true,
  },
  "shows no meta": {
    alter: (store) => ({ acquire: (claim, wait) => store.acquire({ ...claim, meta: {} }, wait) }),
    caughtBy: [
      "inspect shows the holders and the waiters of a lock, with their meta",
      "once: a second caller is told whether the work is running or done, and by which client",
    ],
  },
  "forgets the mark": {
    alter: (store) => ({ release: (grant, ms) => store.release(grant, ms) }),
    caughtBy: [
      "once: a second caller is told whether the work is running or done, and by which client",
    ],
  },
  "resumes under a new token": {
    alter: (store) => ({
      async resume(claim, token, locator) {
        const grant = await store.resume(claim, token, locator);
        return grant && withToken(grant, grant.token + 1n);
      },
    }),
    caughtBy: [
      "a detached lease outlives its client and continues in another one, with the same token",
    ],
  },
};

function withToken(grant: Grant, token: bigint): Grant {
  return new Proxy(grant, {
    get: (target, property) => (property === "token" ? token : Reflect.get(target, property)),
  });
}

describe("a store that", () => {
  const cases = Object.entries(DEFECTS).flatMap(([defect, { alter, caughtBy, isSlow = false }]) =>
    isQuick && isSlow ? [] : caughtBy.map((title) => ({ defect, title, alter })),
  );

  it.concurrent.each(cases)(
    "$defect is caught by: $title",
    async ({ alter, title }) => {
      expect(await outcomeOf(title, harnessOf(alter))).toBe("failed");
    },
    30_000,
  );
});

describe("the cases", () => {
  const EXCLUSION = "100 contenders in one process exclude each other";

  it("of every topic are in the kit once", async () => {
    const names = readdirSync(new URL("cases", import.meta.url)).map((file) => parse(file).name);
    const topics = await Promise.all(names.map((name) => import(`./cases/${name}.ts`)));
    const cases = topics.flatMap((topic) => Object.values<readonly Behaviour[]>(topic)).flat();
    expect(new Set(behaviours)).toEqual(new Set(cases));
    expect(behaviours).toHaveLength(cases.length);
  });

  it("have different titles", () => {
    expect(new Set(behaviours.map(({ title }) => title)).size).toBe(behaviours.length);
  });

  it("are skipped with a reason, and only then", () => {
    const cases = conformance(harnessOf(() => ({})));
    const skipped = cases.filter(({ skip }) => skip !== null);
    expect(skipped.every(({ skip }) => skip !== "")).toBe(true);
    expect(cases.find(({ title }) => title === EXCLUSION)?.skip).toBeNull();
  });

  it("can be exempted one by one, by their titles", () => {
    const harness = harnessOf(() => ({}));
    const exempt = { [EXCLUSION]: "it is slow" };
    const [first] = conformance({ ...harness, exempt });
    expect(first).toMatchObject({ title: EXCLUSION, skip: "it is slow" });
    expect(() => conformance({ ...harness, exempt: { nonsense: "?" } })).toThrow(/nonsense/);
  });

  it("require a child in the harness of a store for more than one process", () => {
    const harness = harnessOf(() => ({}));
    const traits = { ...harness.traits, scope: "machine" } as const;
    expect(() => conformance({ ...harness, traits })).toThrow(/child/);
  });
});
