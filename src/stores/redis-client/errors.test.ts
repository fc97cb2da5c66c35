import { describe, expect, it } from "vitest";
import { storeError } from "./errors.js";

const BEFORE_IT_RAN = { outcome: "not_applied", retryable: true };
const MAYBE_WRITTEN = { outcome: "unknown", retryable: false };
const FOR_GOOD = { outcome: "not_applied", retryable: false };

const AT_7 = "script: 5c59b6771bb2484b5214fb75cd8705ec9d1ce400, on @user_script:1.";
const AT_9 = "script: on @user_script:1.";
const BEFORE_6 = "ERR Error running script (call to f_5c59b6771bb2): @user_script:1: ";

const CASES = [
  ["LOADING Redis is loading the dataset in memory", BEFORE_IT_RAN],
  ["READONLY You can't write against a read only replica.", BEFORE_IT_RAN],
  ["MOVED 3999 127.0.0.1:6381", BEFORE_IT_RAN],
  ["ASK 3999 127.0.0.1:6381", BEFORE_IT_RAN],
  ["TRYAGAIN Multiple keys request during rehashing of slot", BEFORE_IT_RAN],
  ["CLUSTERDOWN The cluster is down", BEFORE_IT_RAN],
  ["BUSY Redis is busy running a script.", BEFORE_IT_RAN],
  ["OOM command not allowed when used memory > 'maxmemory'.", BEFORE_IT_RAN],
  ["MASTERDOWN Link with MASTER is down", BEFORE_IT_RAN],
  ["NOAUTH Authentication required.", FOR_GOOD],
  ["NOPERM this user has no permissions to run the 'evalsha' command", FOR_GOOD],
  ["The client is closed", FOR_GOOD],
  // The words of Redis 7 and later, then those of Valkey 9 and Redis 6.2, where they differ.
  [`WRONGTYPE Operation against a key holding the wrong kind of value ${AT_7}`, MAYBE_WRITTEN],
  [`WRONGTYPE Operation against a key holding the wrong kind of value ${AT_9}`, MAYBE_WRITTEN],
  [`${BEFORE_6}WRONGTYPE Operation against a key`, MAYBE_WRITTEN],
  [`ERR Unknown Redis command called from script ${AT_7}`, MAYBE_WRITTEN],
  [`${BEFORE_6}@user_script: 1: Unknown Redis command called from Lua script`, MAYBE_WRITTEN],
  [`ERR syntax error ${AT_7}`, MAYBE_WRITTEN],
  [`ERR user_script:1: attempt to index local 'a' (a nil value) ${AT_7}`, MAYBE_WRITTEN],
  [`ERR The user executing the script can't run this command ${AT_7}`, MAYBE_WRITTEN],
  [`ERR ACL failure in script: No permissions to access a key ${AT_9}`, MAYBE_WRITTEN],
  // Refused at the first write of a script, and never later.
  [`READONLY You can't write against a read only replica. ${AT_7}`, BEFORE_IT_RAN],
  [`${BEFORE_6}@user_script: 1: -READONLY You can't write against a`, BEFORE_IT_RAN],
  [`OOM command not allowed when used memory > 'maxmemory'. ${AT_9}`, BEFORE_IT_RAN],
  [`${BEFORE_6}@user_script: 1: -OOM command not allowed when`, BEFORE_IT_RAN],
  ["@user_script: 1: -OOM command not allowed when", BEFORE_IT_RAN],
  [`NOREPLICAS Not enough good replicas to write. ${AT_7}`, BEFORE_IT_RAN],
  [`MISCONF Redis is configured to save RDB snapshots ${AT_7}`, BEFORE_IT_RAN],
  [
    "Too many Cluster redirections. Last error: Error: Connection is closed.",
    { outcome: "unknown", retryable: true },
  ],
  ["self-signed certificate in certificate chain", FOR_GOOD],
  ["unable to verify the first certificate", FOR_GOOD],
  ["unable to get local issuer certificate", FOR_GOOD],
  ["Hostname/IP does not match certificate's altnames: IP: 10.0.0.1 is not in the list", FOR_GOOD],
  ["certificate has expired", FOR_GOOD],
  ["certificate is not yet valid", FOR_GOOD],
  ["C0:error:0A00045C:SSL routines:ssl3_read_bytes:tlsv13 alert certificate required", FOR_GOOD],
  ["C0:error:0A000418:SSL routines:ssl3_read_bytes:tlsv1 alert unknown ca", FOR_GOOD],
  ["C0:error:0A00010B:SSL routines:ssl3_get_record:wrong version number", FOR_GOOD],
  ["Connection is closed.", { outcome: "unknown", retryable: true }],
  ["Socket closed unexpectedly", { outcome: "unknown", retryable: true }],
  ["read ECONNRESET", { outcome: "unknown", retryable: true }],
] as const;

describe("an error of Redis or its client", () => {
  it.each(CASES)("%s", (message, expected) => {
    const cause = new Error(message);
    expect(storeError(cause, "redis")).toMatchObject({
      ...expected,
      cause,
      code: "HF_STORE",
      store: "redis",
    });
  });

  it("without a message is described by its code, or by its class", () => {
    // As when `localhost` has two addresses, and Redis listens at neither.
    const refused = Object.assign(new AggregateError([]), { code: "ECONNREFUSED" });
    expect(storeError(refused, "redis")).toMatchObject({
      ...BEFORE_IT_RAN,
      message: "Redis refused: no Redis answers at this address (ECONNREFUSED).",
    });
    // As when a command of node-redis waited for too long.
    class TimeoutError extends Error {}
    expect(storeError(new TimeoutError(), "redis")).toMatchObject({
      outcome: "unknown",
      retryable: true,
      message:
        "No answer from Redis: the client is not connected, or the server hangs (TimeoutError).",
    });
  });
});
