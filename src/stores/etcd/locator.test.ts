import { expect, it } from "vitest";
import { locatorText, readLocator } from "./locator.js";

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
