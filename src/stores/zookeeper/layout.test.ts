import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { check } from "../../../test/fixtures/property.js";
import { isWellFormed, SPACES } from "../../rules/name.js";
import { Layout, locatorText, readLocator, Zxid } from "./layout.js";

const names = fc.string({ unit: "binary", minLength: 1, maxLength: 20 }).filter(isWellFormed);
const special = fc.constantFrom(".", "..", "...", "zookeeper", "a/b", "%2F", "holdfast:once", "\0");
const anyName = fc.oneof(names, special);

describe("the znodes of a lock", () => {
  test("are where another library looks for them", () => {
    const layout = new Layout("/locks", "", "mutex");
    expect(layout.queue({ space: "lock", name: "invoice-42" })).toBe("/locks/invoice-42");
    expect(layout.queue({ space: "lock", name: "a/b c" })).toBe("/locks/a%2Fb%20c");
    expect(layout.queue({ space: "once", name: "job" })).toBe("/locks/holdfast:once/job");
  });

  test("are below the namespace, if there is one", () => {
    const layout = new Layout("", "a/b", "mutex");
    expect(layout.queue({ space: "lock", name: "m" })).toBe("/holdfast:in/a%2Fb/lock/m");
  });

  test("have paths that ZooKeeper takes, and that no two locks share", () => {
    const layouts = [new Layout("", "", "mutex"), new Layout("", "n", "mutex")];
    const lock = fc.record({ space: fc.constantFrom(...SPACES), name: anyName });
    const place = fc.tuple(fc.constantFrom(...layouts), lock);
    check(
      fc.property(place, place, ([layoutA, a], [layoutB, b]) => {
        const [pathA, pathB] = [layoutA.queue(a), layoutB.queue(b)];
        expect(pathA).toMatch(/^(\/(?!\.{1,2}(\/|$))[!-.0-~]+)+$/);
        expect(pathA.startsWith("/zookeeper/") || pathA === "/zookeeper").toBe(false);
        const isSame = layoutA === layoutB && a.space === b.space && a.name === b.name;
        expect(pathA === pathB).toBe(isSame);
      }),
    );
  });

  test("tell the name, and no other znode does", () => {
    const layout = new Layout("", "", "mutex");
    check(
      fc.property(anyName, (name) => {
        const child = layout.queue({ space: "lock", name }).slice(1);
        expect(layout.nameIn(child)).toBe(name);
      }),
    );
    for (const child of ["holdfast:once", "zookeeper", "a b", "%", "%2f"]) {
      expect(layout.nameIn(child), child).toBeNull();
    }
  });
});

const locator = {
  key: { id: -5n, password: Buffer.alloc(16, 7) },
  timeoutMs: 4_000,
  znode: "_c_x-lock-0000000001",
};

test("a locator is read as it was written, also for a session id below 0", () => {
  expect(readLocator(locatorText(locator))).toEqual(locator);
});

test("a text that is no locator is none", () => {
  const text = locatorText(locator);
  for (const broken of [
    "",
    "a/b",
    `${text}/x`,
    text.replace("lock-", "x"),
    text.slice(2),
    `-${text}`,
    // No request can ask for such a timeout.
    text.replace("/4000/", `/${2 ** 31}/`),
  ]) {
    const read = readLocator(broken);
    // A shorter session id is another session's.
    if (broken === text.slice(2)) expect(read?.key.id).not.toBe(locator.key.id);
    else expect(read, broken).toBeNull();
  }
});

test("an event is later than the reply before it, and not later than the next transaction", () => {
  const reply = new Zxid(5n);
  const event = reply.later;
  const next = new Zxid(6n);
  expect([reply.isBefore(event), event.isBefore(reply)]).toEqual([true, false]);
  expect([event.isBefore(next), next.isBefore(event)]).toEqual([true, false]);
  expect([reply.isBefore(reply), event.isBefore(event)]).toEqual([false, false]);
});
