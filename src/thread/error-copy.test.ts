import { describe, expect, it } from "vitest";
import {
  HoldfastError,
  InvalidOptionError,
  QuorumError,
  ReplicationError,
  StoreError,
} from "../errors/index.js";
import { copyOfError, errorOf } from "./error-copy.js";

/** To another thread and back. */
function moved(error: unknown): Error {
  return errorOf(structuredClone(copyOfError(error)));
}

describe("an error of another thread", () => {
  it("has its class, code, fields and text", () => {
    const error = new StoreError("no answer", { outcome: "unknown", retryable: false });
    const copy = moved(error.about("m", "redis"));
    expect(copy).toBeInstanceOf(StoreError);
    expect(copy).toBeInstanceOf(HoldfastError);
    expect(copy).not.toBeInstanceOf(QuorumError);
    expect(copy).toMatchObject({
      name: "StoreError",
      message: 'Lock "m": no answer',
      code: "HF_STORE",
      outcome: "unknown",
      retryable: false,
      lockName: "m",
      store: "redis",
    });
    expect(copy.stack).toContain("error-copy.test");
    expect(Object.keys(copy).sort()).toEqual(Object.keys(error.about("m", "redis")).sort());
  });

  it.each([
    new ReplicationError(2, 1, 100),
    new QuorumError([{ node: "a", vote: "held", detail: "held" }], "Try.", { outcome: "unknown" }),
    new InvalidOptionError("url", "(hidden)", "must be a URL"),
  ])("is of the same class: $name", (error) => {
    const copy = moved(error);
    expect(copy).toBeInstanceOf(error.constructor);
    expect({ ...copy }).toEqual({ ...error });
  });

  it("has the causes of an error of the system, with its code", () => {
    const system = Object.assign(new Error("connect ECONNREFUSED"), {
      code: "ECONNREFUSED",
      port: 1,
      socket: () => {},
    });
    const error = new StoreError("gone", { outcome: "unknown", cause: system });
    const { cause } = moved(error) as { cause?: unknown };
    expect(cause).toBeInstanceOf(Error);
    expect(cause).toMatchObject({ message: "connect ECONNREFUSED", code: "ECONNREFUSED", port: 1 });
    expect(cause).not.toHaveProperty("socket");
  });

  it("ends, also if its causes are a circle", () => {
    const error = new Error("round");
    error.cause = error;
    expect(moved(error).message).toBe("round");
  });

  it("is an error, whatever was thrown", () => {
    expect(moved("text")).toMatchObject({ name: "Error", message: "text" });
    expect(moved(new TypeError("x"))).toMatchObject({ name: "TypeError", message: "x" });
  });
});
