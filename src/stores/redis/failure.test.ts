import { describe, expect, it } from "vitest";
import { storeError } from "./failure.js";

const BEFORE_IT_RAN = { outcome: "not_applied", retryable: true };
const FOR_GOOD = { outcome: "not_applied", retryable: false };

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
  ["Connection is closed.", { outcome: "unknown", retryable: true }],
  ["Socket closed unexpectedly", { outcome: "unknown", retryable: true }],
  ["read ECONNRESET", { outcome: "unknown", retryable: true }],
] as const;

describe("an error of Redis or its client", () => {
  it.each(CASES)("%s", (message, expected) => {
    const cause = new Error(message);
    expect(storeError(cause)).toMatchObject({ ...expected, cause, code: "HF_STORE" });
  });
});
