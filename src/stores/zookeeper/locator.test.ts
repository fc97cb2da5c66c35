import { expect, test } from "vitest";
import { locatorText, readLocator } from "./locator.js";

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
    // No request can ask for such a time-out.
    text.replace("/4000/", `/${2 ** 31}/`),
  ]) {
    const read = readLocator(broken);
    // A shorter session id is another session's.
    if (broken === text.slice(2)) expect(read?.key.id).not.toBe(locator.key.id);
    else expect(read, broken).toBeNull();
  }
});
