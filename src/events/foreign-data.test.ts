import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { settled } from "../../test/fixtures/manual-runtime.js";
import { StoreError } from "../errors/index.js";
import { channels } from "./events.js";
import { foreignData, guarded, oneOf, record, text, Unreadable, whole } from "./foreign-data.js";

const heard: unknown[] = [];
const onEvent = (event: unknown): void => void heard.push(event);
beforeEach(() => {
  heard.length = 0;
  subscribe(channels.foreign, onEvent);
});
afterEach(() => void unsubscribe(channels.foreign, onEvent));

describe("a whole number", () => {
  it.each([0, 1, "0", "0000000000000042", Number.MAX_SAFE_INTEGER])("may be %j", (value) => {
    expect(whole(value)).toBe(Number(value));
  });

  it.each([
    ["", " 1", "1 ", "-1", "+1", "1e3", "0x10", "1.5", "NaN", "Infinity", "9007199254740992"],
    ["9".repeat(400), -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, null, undefined],
    [true, [], ["1"], {}, 1n, Buffer.from("1")],
  ])("is none of %j and others", (...values) => {
    for (const value of values) expect(() => whole(value)).toThrow(Unreadable);
  });
});

describe("other values", () => {
  it("are what they are, or unreadable", () => {
    expect(text("a")).toBe("a");
    expect(oneOf(["a", "b"], "b")).toBe("b");
    expect(record({ a: 1 })).toEqual({ a: 1 });
    for (const value of [null, undefined, 1, Buffer.from("a")]) {
      expect(() => text(value)).toThrow(Unreadable);
    }
    for (const value of [null, [], "a", 1]) expect(() => record(value)).toThrow(Unreadable);
    expect(() => oneOf(["a", "b"], "c")).toThrow(Unreadable);
  });
});

describe("the error of foreign data", () => {
  it("says where, is unknown in its outcome, and not worth a retry", () => {
    const error = foreignData("key k", new Unreadable("a text"));
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ code: "HF_STORE", outcome: "unknown", retryable: false });
    expect(error.message).toContain("data that is not ours at key k (expected a text)");
  });
});

describe("a guarded handler", () => {
  it("passes on what it is given", () => {
    const seen: unknown[] = [];
    guarded("redis", "a message", (...args: [number, string]) => seen.push(...args))(1, "a");
    expect(seen).toEqual([1, "a"]);
    expect(heard).toEqual([]);
  });

  it("neither throws nor rejects, but publishes", async () => {
    const error = new Error("garbage");
    guarded("redis", "a message", () => {
      throw error;
    })();
    guarded("file", "a line", () => Promise.reject(error))();
    await settled();
    expect(heard).toEqual([
      { store: "redis", where: "a message", error },
      { store: "file", where: "a line", error },
    ]);
  });
});
