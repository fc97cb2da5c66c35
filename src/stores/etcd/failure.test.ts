import { describe, expect, it } from "vitest";
import { etcdError } from "./failure.js";

const HOSTS = "10.0.0.1:2379, 10.0.0.2:2379";
const ADVICE = "Does the server expect ";
const unavailable = (cause: string): Error =>
  new Error(`14 UNAVAILABLE: No connection established. Last error: ${cause}. Resolution note: `);

describe("a failure of etcd", () => {
  it.each([
    [
      "Error: connect ECONNREFUSED 10.0.0.1:2379",
      "no connection (connect ECONNREFUSED 10.0.0.1:2379).",
    ],
    ["Error: self-signed certificate", "no connection (self-signed certificate)."],
    [
      "Failed to connect (2026-11-16T11:42:11.157Z)",
      `no connection (Failed to connect). ${ADVICE}TLS? Then the URL begins with etcds:.`,
    ],
    [
      "Error: 802C:error:0A00010B:SSL routines:get_record:wrong version number:../ssl.c:350:\n",
      `no connection (wrong version number). ${ADVICE}no TLS? Then the URL begins with etcd:.`,
    ],
    [
      "Client network socket disconnected before secure TLS connection was established",
      "no connection (Client network socket disconnected before secure TLS connection was " +
        `established). ${ADVICE}no TLS? Then the URL begins with etcd:.`,
    ],
    ["null", "no connection."],
  ])("to connect says where and why: %j", (cause, text) => {
    expect(etcdError(unavailable(cause), HOSTS).message).toBe(`etcd at ${HOSTS}: ${text}`);
  });

  it("says as much as is known of a client that was passed in", () => {
    const error = etcdError(new Error("14 UNAVAILABLE: Connection dropped"), "");
    expect(error.message).toBe("etcd: Connection dropped");
    expect(error).toMatchObject({ outcome: "unknown", retryable: true });
  });

  it("that etcd itself decided is final, or had no effect", () => {
    const denied = etcdError(new Error("7 PERMISSION_DENIED: etcdserver: permission denied"), "");
    expect(denied).toMatchObject({ outcome: "not_applied", retryable: false });
    const userless = etcdError(new Error("etcdserver: authentication is not enabled"), "");
    expect(userless).toMatchObject({ outcome: "not_applied", retryable: false });
    const gone = etcdError(new Error("5 NOT_FOUND: etcdserver: requested lease not found"), "");
    expect(gone).toMatchObject({ outcome: "not_applied", retryable: true });
    const old = etcdError(new Error("etcdserver: revision of auth store is old"), "");
    expect(old).toMatchObject({ outcome: "not_applied", retryable: true });
  });
});
