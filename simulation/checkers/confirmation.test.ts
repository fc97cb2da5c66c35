import { describe, expect, it } from "vitest";
import { checkConfirmation } from "./confirmation.js";
import { Story } from "./story.js";

const handedOver = (): Story => {
  const story = new Story()
    .at(0)
    .asks("p/0")
    .at(10)
    .grants("p/0", 10n, { isHandoff: true, span: 2 });
  return story.at(12).takes("p/0", 10n, 1_000);
};

describe("a lock that was handed over", () => {
  it("is confirmed before its new holder does anything else", () => {
    expect(checkConfirmation(handedOver().entries, 5)).toHaveLength(1);
    expect(checkConfirmation(handedOver().at(16).extends(10n).entries, 5)).toEqual([]);
    expect(checkConfirmation(handedOver().at(100).extends(10n).entries, 5)).toHaveLength(1);
  });

  it("is confirmed once for all turns on it", () => {
    const story = handedOver().at(16).extends(10n).at(50).asks("p/1").takes("p/1", 11n, 1_000);
    expect(checkConfirmation(story.entries, 5)).toEqual([]);
  });

  it("is not confirmed where it was revoked before that", () => {
    const revoked = { type: "revoked", name: "a", token: 10n } as const;
    expect(checkConfirmation(handedOver().at(17).happens(revoked).entries, 5)).toEqual([]);
    expect(checkConfirmation(handedOver().at(18).happens(revoked).entries, 5)).toHaveLength(1);
  });

  it("needs no confirm when it was asked for and given", () => {
    const story = new Story().at(0).asks("p/0").holds("p/0", 10n, 1_000);
    expect(checkConfirmation(story.entries, 5)).toEqual([]);
  });
});
