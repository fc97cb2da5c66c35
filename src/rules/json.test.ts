import { beforeEach, describe, expect, it } from "vitest";
import { LockTrial } from "../../test/fixtures/lock-trial.js";
import { watch } from "../../test/fixtures/outcome.js";
import { InvalidOptionError, LeaseLostError } from "../errors/index.js";
import { withJson } from "./json.js";

let trial: LockTrial;

const parsed = (value: unknown): Record<string, unknown> => JSON.parse(JSON.stringify(value));

beforeEach(() => {
  trial = new LockTrial();
});

describe("JSON.stringify", () => {
  it("shows a lease without its handle, with the token as text", async () => {
    const lease = await trial.locks.mutex("x").acquire({ transferable: true });
    expect(parsed(lease)).toEqual({
      name: "x",
      token: `${lease.token}`,
      state: "held",
      remainingMs: expect.any(Number),
    });
    const set = await trial.locks.all(["a", "b"]).acquire();
    expect(parsed(set)).toMatchObject({ state: "held", leases: [{ name: "a" }, { name: "b" }] });
    await trial.locks.mutex("r", { reentrant: true }).run((outer) => {
      expect(parsed(outer)).toMatchObject({ name: "r", token: `${outer.token}` });
    });
  });

  it("shows a view, and each holder in it", async () => {
    const { token } = await trial.locks.mutex("x").acquire();
    const view = await trial.others.inspect("x");
    expect(parsed(view)).toMatchObject({ name: "x", holders: [{ token: `${token}` }] });
    expect(parsed(view.holders[0])).toMatchObject({ token: `${token}` });
    expect(Object.keys(view)).not.toContain("toJSON");
    for await (const listed of trial.locks.list()) expect(parsed(listed)).toEqual(parsed(view));
  });

  it("shows an error of a client by name, message and code, without its arguments", () => {
    const error = Object.assign(new TypeError("no"), { code: "ECONNRESET", args: ["hunter2"] });
    const told = { name: "TypeError", message: "no", code: "ECONNRESET" };
    expect(parsed(withJson({ error, more: [error] }))).toEqual({ error: told, more: [told] });
  });

  it("shows errors with their fields and cause", async () => {
    const held = await trial.others.mutex("x").acquire();
    const asked = watch(trial.locks.mutex("x").acquire({ waitMs: 10 }));
    await trial.runtime.advance(10);
    expect(parsed(asked.error)).toMatchObject({
      name: "AcquireTimeoutError",
      code: "HF_ACQUIRE_TIMEOUT",
      message: expect.stringContaining("was not acquired"),
      lockName: "x",
      holder: { token: `${held.token}` },
    });
    const { holder } = asked.error as { holder?: unknown };
    expect(parsed(holder)).toMatchObject({ token: `${held.token}` });
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    expect(parsed(new InvalidOptionError("a", circle, "is no circle"))).toMatchObject({
      code: "HF_INVALID_OPTION",
      option: "a",
    });
    const lost = new LeaseLostError("expired", { token: 7n, cause: new Error("why") });
    expect(parsed(lost)).toMatchObject({ token: "7", reason: "expired", cause: "Error: why" });
  });

  it("shows what became of a once", async () => {
    const first = await trial.locks.once("o", () => 1, { keepMs: 1_000 });
    expect(parsed(first)).toMatchObject({ ran: true, value: 1, token: expect.any(String) });
    const second = await trial.locks.once("o", () => 1, { keepMs: 1_000 });
    expect(parsed(second)).toMatchObject({ ran: false, state: "done", token: expect.any(String) });
  });
});
