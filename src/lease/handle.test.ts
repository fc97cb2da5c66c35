import { describe, expect, it } from "vitest";
import { claimOf } from "../../test/fixtures/ledger-server.js";
import { ScriptedGrant } from "../../test/fixtures/scripted-store.js";
import { InvalidOptionError } from "../errors/index.js";
import { decodeHandle, encodeHandle } from "./handle.js";

const asked = claimOf("5ecret-0wner", { name: 'a "name" \u{1f512}', transferable: true });
const grant = new ScriptedGrant(asked, 2n ** 60n + 1n, 1, { locator: "s/1" });

const encode = (value: unknown): string =>
  `hf1.${Buffer.from(JSON.stringify(value)).toString("base64url")}`;

describe("a handle", () => {
  it("carries all it takes to go on, and nothing about who made it", () => {
    const { claim, token, locator } = decodeHandle(encodeHandle(grant));
    expect(claim).toEqual({ ...grant.claim, meta: {} });
    expect(token).toBe(grant.token);
    expect(locator).toBe("s/1");
  });

  it("is one word, fit for an environment variable or a header", () => {
    expect(encodeHandle(grant)).toMatch(/^hf1\.[\w-]+$/);
  });

  it.each([
    ["no string", 42],
    ["nothing", undefined],
    ["another version", encodeHandle(grant).replace("hf1.", "hf9.")],
    ["a cut one", encodeHandle(grant).slice(0, 40)],
    ["no JSON", `hf1.${Buffer.from("{claim").toString("base64url")}`],
    ["no object", encode(7)],
    ["no claim", encode({ token: "1" })],
    ["no owner", encode({ claim: { name: "a" }, token: "1" })],
    ["no token", encode({ claim: grant.claim })],
    ["an odd token", encode({ claim: grant.claim, token: "12x" })],
    ["an empty token", encode({ claim: grant.claim, token: "", locator: null })],
    ["an odd locator", encode({ claim: grant.claim, token: "1", locator: 5 })],
    ...[
      { owner: "two words" },
      { owner: "" },
      { name: "" },
      { name: "\ud800" },
      { space: "else" },
      { mode: "both" },
      { weight: "one" },
      { weight: -1 },
      { limit: 1.5 },
      { span: null },
      { ttlMs: "30" },
      { ownSession: 1 },
    ].map((odd): [string, string] => [
      `one with ${JSON.stringify(odd)}`,
      encode({ claim: { ...grant.claim, ...odd }, token: "1", locator: null }),
    ]),
  ])("that is %s is refused", (_, handle) => {
    expect(() => decodeHandle(handle)).toThrow(InvalidOptionError);
  });

  it("is a secret: neither it nor a part of it is in the message", () => {
    const spoilt = `${encodeHandle(grant).slice(0, -9)}"`;
    const error = catchError(() => decodeHandle(spoilt));
    expect(error).toMatchObject({ option: "handle", value: "(hidden)" });
    expect(JSON.stringify(error) + String(error) + error.stack).not.toContain(spoilt.slice(4, 20));
    expect(error.cause).toBeUndefined();
  });
});

function catchError(request: () => unknown): Error {
  try {
    request();
  } catch (error) {
    return error as Error;
  }
  throw new Error("it did not throw");
}
