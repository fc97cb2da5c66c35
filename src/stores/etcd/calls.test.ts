import { beforeEach, expect, it } from "vitest";
import { ManualRuntime, settled } from "../../../test/fixtures/manual-runtime.js";
import { watch } from "../../../test/fixtures/outcome.js";
import { pause } from "../../time/pause.js";
import type { TimeLimitError } from "../../time/timers.js";
import { EtcdBatch, type EtcdCalls } from "./calls.js";
import { etcdError } from "./errors.js";
import type { TxnReply, TxnRequest } from "./wire/messages.js";

const REFUSAL = etcdError(new Error("etcdserver: too many requests"), "a:2379");
const header = { revision: 9n, raftTerm: 1n };
let runtime: ManualRuntime;
let sent: TxnRequest[];
let answer: (request: TxnRequest) => Promise<TxnReply>;
let batch: EtcdBatch;

beforeEach(() => {
  runtime = new ManualRuntime();
  sent = [];
  const calls = {
    txn: (request: TxnRequest) => {
      sent.push(request);
      return answer(request);
    },
    lateError: (error: TimeLimitError) => etcdError(error, "a:2379"),
  } as unknown as EtcdCalls;
  batch = new EtcdBatch(calls, runtime);
});

/** A request for a queue; in the transaction it is known by the key that it reads. */
function request(key: string): TxnRequest {
  return { success: [{ requestRange: { key: Buffer.from(key) } }] };
}

function ask(key: string, limitMs: number) {
  return watch(batch.txn(key, request(key), limitMs, { count: 0 }));
}

const alone: TxnReply = { header, succeeded: true, responses: [{}] };
const isBatch = ({ success = [] }: TxnRequest): boolean =>
  success.some((operation) => "requestTxn" in operation);

it("that is refused is sent request by request, and each answer counts for its own", async () => {
  answer = (one) =>
    isBatch(one) ? Promise.reject(REFUSAL) : pause(runtime.timers, 5).then(() => alone);
  const asked = [ask("a", 1_499), ask("b", 1_500)];
  await runtime.advance(5);
  expect(asked.map(({ state }) => state)).toEqual(["resolved", "resolved"]);
  expect(sent.map(isBatch)).toEqual([true, false, false]);
});

it("does not send a request again whose own time is over", async () => {
  let refuse = (): void => {};
  answer = (one) =>
    isBatch(one)
      ? new Promise((_, reject) => {
          refuse = () => reject(REFUSAL);
        })
      : Promise.resolve(alone);
  const [short, long] = [ask("a", 100), ask("b", 1_500)];
  await runtime.advance(100);
  expect(short.error).toMatchObject({ outcome: "unknown" });
  expect(String(short.error)).toContain("etcd at a:2379: No answer within 100 ms");
  refuse();
  await settled();
  expect(long.state).toBe("resolved");
  expect(sent.map(isBatch)).toEqual([true, false]);
});
