import { describe, expect, it } from "vitest";
import { NO_LIMIT } from "../../rules/fits.js";
import type { Space } from "../../rules/name.js";
import {
  entryId,
  Layout,
  leaseIdOf,
  leaseNumber,
  locatorText,
  Revision,
  readLocator,
} from "./layout.js";
import type { KeyValue } from "./wire/messages.js";

const raw = new Layout("");
const spaced = new Layout("a/b c");

function keyValue(key: string | Buffer, revision: number, value = ""): KeyValue {
  const at = BigInt(revision);
  return {
    key: Buffer.from(key),
    value: Buffer.from(value),
    createRevision: at,
    modRevision: at,
    lease: 255n,
  };
}

const claim = { mode: "shared", weight: 2, limit: 5 } as const;

describe("keys", () => {
  it("are where etcdctl looks for them", () => {
    const id = entryId("ff", claim, "0-1");
    expect(id).toBe("ff.s.2.5.0-1");
    expect(raw.entry({ space: "lock", name: "a/b" }, id).toString()).toBe(`a/b/${id}`);
    expect(raw.queue({ space: "lock", name: "a" }).rangeEnd.toString()).toBe("a0");
  });

  it("never meet, whatever the names, spaces and namespaces", () => {
    const names = [
      "a",
      "a/",
      "holdfast:",
      "holdfast:lock/a",
      "holdfast:in/a/lock/a",
      "lock/a",
      "in",
    ];
    const spaces: Space[] = ["lock", "election", "once"];
    const all = [raw, spaced, new Layout("a"), new Layout("a/b")].flatMap((keys) =>
      spaces.flatMap((space) => names.map((name) => keys.entry({ space, name }, "1").toString())),
    );
    expect(new Set(all).size).toBe(all.length);
  });

  it("give their names back", () => {
    for (const keys of [raw, spaced]) {
      for (const space of ["lock", "election", "once"] as const) {
        for (const name of ["a", "a/b", "/", "holdfast:x", "é/"]) {
          expect(keys.nameIn(space, keys.entry({ space, name }, "1f"))).toBe(name);
        }
      }
    }
    expect(raw.nameIn("lock", raw.session("ff"))).toBeNull();
    expect(raw.nameIn("lock", Buffer.from("config/database"))).toBeNull();
  });
});

describe("listing", () => {
  const lock = { space: "lock", name: "m" } as const;

  it("is in the order of revisions, without longer names", () => {
    const kvs = [
      keyValue("m/1.x.1.-.b", 9),
      keyValue("m/2.s.2.5.a", 4, "text"),
      keyValue("m/below/1", 3),
      keyValue("m/694d", 6),
      keyValue("m/2.s.0.5.a", 5),
    ];
    const { moment, entries } = raw.listing(lock, { revision: 12n }, kvs);
    expect(moment).toEqual(new Revision(12n));
    expect(entries.map(({ token, mode, weight, limit }) => [token, mode, weight, limit])).toEqual([
      [4n, "shared", 2, 5],
      [5n, "exclusive", 1, NO_LIMIT],
      [6n, "exclusive", 1, NO_LIMIT],
      [9n, "exclusive", 1, NO_LIMIT],
    ]);
    expect(entries[0]).toMatchObject({ text: "text", session: "ff" });
  });

  it("has a mark only where there can be one", () => {
    const once = { space: "once", name: "m" } as const;
    const done = keyValue(raw.mark(once), 8, JSON.stringify({ meta: {}, token: "7" }));
    expect(raw.listing(once, { revision: 9n }, [done])).toMatchObject({
      entries: [],
      mark: { token: 7n },
    });
    const foreign = raw.listing(lock, { revision: 9n }, [keyValue("m/done", 8)]);
    expect(foreign.mark).toBeNull();
    expect(foreign.entries).toHaveLength(1);
  });
});

describe("a key found by its token", () => {
  const lock = { space: "lock", name: "a" } as const;
  const kindOf = (id: string, lease: bigint): string | undefined =>
    raw.find(lock, [{ ...keyValue(`a/${id}`, 7), lease }], 7n)?.kind;

  it("is a lock entry only where it is bound to the lease that it names", () => {
    expect(kindOf("ff.x.1.-.0-0", 255n)).toBe("lock");
    expect(kindOf("ff", 255n)).toBe("lock");
    expect(kindOf("-ff", -255n)).toBe("lock");
    expect(kindOf("ff", -255n)).toBe("foreign");
    expect(kindOf("ff.x.1.-.0-0", 254n)).toBe("moved");
    expect(kindOf("ff", 254n)).toBe("foreign");
    expect(kindOf("ff.x.1.-.0-0", 0n)).toBe("foreign");
    expect(kindOf("0", 0n)).toBe("foreign");
    expect(kindOf("config", 255n)).toBe("foreign");
    expect(kindOf("done", 255n)).toBe("foreign");
  });

  it("is no key of a longer name, and none with another token", () => {
    expect(kindOf("b/ff", 255n)).toBeUndefined();
    expect(raw.find(lock, [keyValue("a/ff", 8)], 7n)).toBeUndefined();
  });

  it("is a mark by the token in its text", () => {
    const once = { space: "once", name: "a" } as const;
    const kv = keyValue(raw.mark(once), 9, '{"meta":{},"token":"7"}');
    expect(raw.find(once, [kv], 7n)?.kind).toBe("mark");
    expect(raw.find(once, [{ ...kv, lease: 0n }], 7n)?.kind).toBe("foreign");
    expect(raw.find(once, [kv], 9n)).toBeUndefined();
  });
});

describe("a lease id", () => {
  it.each([
    ["ff", 255n],
    ["-8000000000000000", -9223372036854775808n],
  ])("%s has the number %s", (id, number) => {
    expect(leaseNumber(id)).toBe(number);
    expect(leaseIdOf({ lease: number })).toBe(id);
  });
});

describe("a locator", () => {
  it("is read as it was written", () => {
    const locator = { leaseId: "1f", entryId: "1f.x.1.-.0-0" };
    expect(readLocator(locatorText(locator))).toEqual(locator);
  });

  it.each(["", "/", "1f", "1f/", "1f/done", "xy/1f.x.1.-.0-0", "1f/1f.x.0.-.0-0"])(
    "refuses %j",
    (text) => {
      expect(readLocator(text)).toBeNull();
    },
  );
});
