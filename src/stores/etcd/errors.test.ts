import { describe, expect, it } from "vitest";
import { etcdError } from "./errors.js";
import { NotConnectedError } from "./wire/http2.js";

const HOSTS = "10.0.0.1:2379, 10.0.0.2:2379";
const ADVICE = "Does the server expect ";

describe("a failure of etcd", () => {
  it.each([
    ["connect ECONNREFUSED 10.0.0.1:2379", "no connection (connect ECONNREFUSED 10.0.0.1:2379)."],
    ["self-signed certificate", "no connection (self-signed certificate)."],
    [
      "Failed to connect",
      `no connection (Failed to connect). ${ADVICE}TLS? Then the URL begins with etcds:.`,
    ],
    [
      "802C:error:0A00010B:SSL routines:get_record:wrong version number:../ssl.c:350:\n",
      `no connection (wrong version number). ${ADVICE}no TLS? Then the URL begins with etcd:.`,
    ],
    [
      "Client network socket disconnected before secure TLS connection was established",
      "no connection (Client network socket disconnected before secure TLS connection was " +
        `established). ${ADVICE}no TLS? Then the URL begins with etcd:.`,
    ],
  ])("to connect says where and why: %j", (cause, text) => {
    expect(etcdError(new NotConnectedError(cause), HOSTS).message).toBe(
      `etcd at ${HOSTS}: ${text}`,
    );
  });

  it("after the request was sent has an unknown outcome", () => {
    const error = etcdError(new Error("Connection dropped"), HOSTS);
    expect(error.message).toBe(`etcd at ${HOSTS}: Connection dropped`);
    expect(error).toMatchObject({ outcome: "unknown", retryable: true });
  });

  it("that etcd itself decided is final, or had no effect", () => {
    const denied = etcdError(new Error("etcdserver: permission denied"), "");
    expect(denied).toMatchObject({ outcome: "not_applied", retryable: false });
    const userless = etcdError(new Error("etcdserver: authentication is not enabled"), "");
    expect(userless).toMatchObject({ outcome: "not_applied", retryable: false });
    const gone = etcdError(new Error("etcdserver: requested lease not found"), "");
    expect(gone).toMatchObject({ outcome: "not_applied", retryable: true });
    const old = etcdError(new Error("etcdserver: revision of auth store is old"), "");
    expect(old).toMatchObject({ outcome: "not_applied", retryable: true });
  });
});
