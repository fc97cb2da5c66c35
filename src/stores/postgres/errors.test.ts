import { describe, expect, it } from "vitest";
import { postgresError } from "./errors.js";

/** An error as the clients throw it. */
function failure(code: string, severity: string, message = "said the server"): Error {
  return Object.assign(new Error(message), { code, severity });
}

describe("a failure of Postgres", () => {
  it.each([
    // A transaction with an error is rolled back.
    ["40001", "ERROR", "not_applied", true],
    ["40P01", "ERROR", "not_applied", true],
    ["55P03", "ERROR", "not_applied", true],
    ["57014", "ERROR", "not_applied", true],
    ["25006", "ERROR", "not_applied", true],
    ["53100", "ERROR", "not_applied", true],
    ["22012", "ERROR", "not_applied", true],
    ["42501", "ERROR", "not_applied", false],
    ["42883", "ERROR", "not_applied", false],
    ["3F000", "ERROR", "not_applied", false],
    ["LF002", "ERROR", "not_applied", false],
    ["LF004", "ERROR", "not_applied", false],
    ["LF005", "ERROR", "not_applied", false],
    ["42703", "ERROR", "not_applied", false],
    ["42704", "ERROR", "not_applied", false],
    ["54000", "ERROR", "not_applied", true],
    // The severity is translated; these states are never fatal.
    ["40001", "FEHLER", "not_applied", true],
    ["42501", "ERREUR", "not_applied", false],
    ["53100", "FEHLER", "unknown", true],
    // The commit may have come before the end of the connection.
    ["57P01", "FATAL", "unknown", true],
    ["57P02", "FATAL", "unknown", true],
    ["53100", "PANIC", "unknown", true],
    ["08P01", "FATAL", "unknown", true],
  ])("%s, %s: %s", (code, severity, outcome, retryable) => {
    const error = postgresError(failure(code, severity), "running");
    expect(error).toMatchObject({ outcome, retryable, store: "postgres" });
    expect(error.message).toContain(`${code}: said the server`);
  });

  it.each([
    ["57P03", true],
    ["53300", true],
    ["57P01", true],
    ["28P01", false],
    ["28000", false],
    ["3D000", false],
  ])("%s while it connects: nothing was applied", (code, retryable) => {
    const error = postgresError(failure(code, "FATAL"), "connecting");
    expect(error).toMatchObject({ outcome: "not_applied", retryable });
  });

  it("of the network is unknown, but for a connection that was never made", () => {
    const refused = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:1"), {
      code: "ECONNREFUSED",
    });
    const fresh = (): Error => Object.assign(new Error(refused.message), { code: refused.code });
    expect(postgresError(fresh(), "connecting").outcome).toBe("not_applied");
    expect(postgresError(fresh(), "running").outcome).toBe("unknown");
    // The code of a system error must not count as a state of Postgres.
    const pipe = Object.assign(new Error("write EPIPE"), { code: "EPIPE" });
    expect(postgresError(pipe, "running").message).toBe("Postgres failed: write EPIPE.");
  });

  it.each([
    ["53300", "all connections of the server are taken"],
    ["54000", "the NOTIFY queue is full"],
    ["42703", "a column of a table of the schema holdfast is missing"],
    ["42704", "a type of the schema holdfast is missing"],
  ])("%s says first what is wrong", (code, what) => {
    const { message } = postgresError(failure(code, "ERROR"), "running");
    expect(message.slice(0, `Postgres refused: ${what}`.length)).toBe(`Postgres refused: ${what}`);
  });

  it("says what to run where the functions are missing", () => {
    const error = postgresError(failure("42883", "ERROR"), "running");
    expect(error.message).toContain("holdfast migrate");
  });

  it("of TLS is final, and says what to do", () => {
    const cause = new Error("self-signed certificate in certificate chain");
    const error = postgresError(cause, "connecting");
    expect(error).toMatchObject({ outcome: "not_applied", retryable: false });
    expect(error.message).toContain("name the file of its own by ca=");
  });

  it("does not carry the parameters, which name owners", () => {
    const cause = Object.assign(failure("22012", "ERROR"), { parameters: ["owner"], query: "q" });
    expect(JSON.stringify(postgresError(cause, "running").cause)).not.toContain("owner");
  });
});
