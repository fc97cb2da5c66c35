import { describe, expect, it } from "vitest";
import type { Store } from "../contract/store.js";
import { memoryStore } from "../stores/memory/index.js";
import { Holdfast } from "./holdfast.js";

/** A memory store that examines as told. */
function storeWith(examine: Store["examine"]): Store {
  return Object.assign(memoryStore(), { examine });
}

describe("an examination", () => {
  it("has the findings of the store and of the process", async () => {
    const locks = new Holdfast(memoryStore());
    const { store, findings, failureCases } = await locks.examine();
    expect(store).toBe("memory");
    expect(findings.map(({ id }) => id)).toEqual(["memory/scope", "process/event-loop"]);
    expect(findings[0]).toMatchObject({ id: "memory/scope", severity: "note" });
    expect(failureCases.some(({ isSafe }) => !isSafe)).toBe(true);
    await locks.close();
  });

  it("has the findings of the process where the store has none", async () => {
    const locks = new Holdfast(storeWith(undefined));
    const { findings, failureCases } = await locks.examine();
    expect(findings.map(({ id }) => id)).toEqual(["process/event-loop"]);
    expect(failureCases).toEqual([]);
    await locks.close();
  });

  it("finds an event loop that is blocked for longer than a third of the ttl", async () => {
    const locks = new Holdfast(memoryStore());
    const examining = locks.examine({ ttlMs: 300 });
    setTimeout(() => {
      for (const endMs = performance.now() + 250; performance.now() < endMs; );
    }, 50);
    const { findings } = await examining;
    expect(findings.at(-1)).toMatchObject({ id: "process/event-loop", severity: "warning" });
    await locks.close();
  });

  it("takes the ttl of the defaults, or the one that is given", async () => {
    const asked: number[] = [];
    const store = storeWith(async ({ ttlMs }) => {
      asked.push(ttlMs);
      return { store: "test", findings: [], failureCases: [] };
    });
    const locks = new Holdfast(store, { ttlMs: 7_000 });
    await Promise.all([locks.examine(), locks.examine({ ttlMs: 50 })]);
    expect(asked).toEqual([7_000, 50]);
    await expect(locks.examine({ ttlMs: 0 })).rejects.toMatchObject({ code: "HF_INVALID_OPTION" });
    await expect(locks.examine({ ttl: 1 } as object)).rejects.toThrow("did you mean ttlMs?");
    await locks.close();
  });

  it("ends with the reason of its signal, also where the store does not", async () => {
    const locks = new Holdfast(storeWith(() => new Promise(() => {})));
    const aborter = new AbortController();
    const examining = locks.examine({ signal: aborter.signal });
    aborter.abort(new Error("no longer wanted"));
    await expect(examining).rejects.toThrow("no longer wanted");
    await locks.close();
    await expect(locks.examine()).rejects.toMatchObject({ code: "HF_CLOSED" });
  });
});
