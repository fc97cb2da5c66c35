/**
 * Sends the transactions of one session that are asked for in one turn of the event loop as one.
 *
 * Each stays a transaction of its own inside. All writes of one transaction have the same revision,
 * so a batch never has two requests for one queue: both entries would have the same token, and a
 * watch that starts after the listing of the one would miss the other. A single request is sent as
 * it is, without a delay. When etcd refuses one request, it refuses the batch: then each request is
 * sent by itself.
 */
import { StoreError } from "../../errors.js";
import { foreignData } from "../../foreign-data.js";
import type { Port } from "../../time/port.js";
import { TimeLimitError, within } from "../../time/timers.js";
import { checkReply, type EtcdCalls } from "./etcd-calls.js";
import type { TxnReply, TxnRequest } from "./etcd-client.js";
import type { Sendings } from "./timed-call.js";

/** etcd takes 128 operations in one transaction, those inside its parts not counted. */
const MOST_IN_BATCH = 64;

interface Pending {
  readonly queue: string;
  readonly request: TxnRequest;
  readonly limitMs: number;
  readonly sendings: Sendings;
  resolve(reply: TxnReply): void;
  reject(error: unknown): void;
}

export class EtcdBatch {
  readonly #calls: EtcdCalls;
  readonly #port: Port;
  #pending: Pending[] = [];

  constructor(calls: EtcdCalls, port: Port) {
    this.#calls = calls;
    this.#port = port;
  }

  /** `queue` names the queue of the request; `sendings` counts each time that it is sent. */
  txn(queue: string, request: TxnRequest, limitMs: number, sendings: Sendings): Promise<TxnReply> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ queue, request, limitMs, sendings, resolve, reject });
      if (this.#pending.length === 1) this.#port.timers.soon(() => this.#flush());
    });
  }

  #flush(): void {
    let rest = this.#pending;
    this.#pending = [];
    while (rest.length > 0) {
      const queues = new Set<string>();
      const batch: Pending[] = [];
      const later: Pending[] = [];
      for (const one of rest) {
        const joins = batch.length < MOST_IN_BATCH && !queues.has(one.queue);
        queues.add(one.queue);
        (joins ? batch : later).push(one);
      }
      const [first] = batch;
      if (first && batch.length === 1) this.#sendAlone(first);
      else void this.#send(batch);
      rest = later;
    }
  }

  #sendAlone({ request, limitMs, sendings, resolve, reject }: Pending): void {
    const key = onlyDeleted(request);
    if (key === null) this.#calls.txn(request, limitMs, sendings).then(resolve, reject);
    else {
      this.#calls.delete(key, limitMs, sendings).then((reply) => {
        const responses = [{ response_delete_range: reply }];
        resolve({ header: reply.header, succeeded: true, responses });
      }, reject);
    }
  }

  async #send(batch: readonly Pending[]): Promise<void> {
    const sendings = { count: 0 };
    const limitMs = Math.max(...batch.map((one) => one.limitMs));
    const success = batch.map(({ request }) => ({ request_txn: request }));
    const sent = this.#calls.txn({ success }, limitMs, sendings);
    const shared = sent.finally(() => {
      for (const one of batch) one.sendings.count += sendings.count;
    });
    shared.catch((error) => {
      // A batch that etcd refused had no effect: its sending does not count.
      if (isRefused(error)) for (const one of batch) one.sendings.count -= 1;
    });
    // A request with less time than the rest of its batch does not wait longer than that. Its
    // caller then counts on its not being sent again.
    const expired = new Set<Pending>();
    for (const one of batch) {
      if (one.limitMs === limitMs) continue;
      within(this.#port.timers, one.limitMs, shared).catch((error) => {
        if (!(error instanceof TimeLimitError)) return;
        expired.add(one);
        one.reject(this.#calls.lateError(error));
      });
    }
    try {
      const { header, responses } = await shared;
      batch.forEach((one, index) => {
        const { succeeded = false, responses: inner = [] } = responses[index]?.response_txn ?? {};
        try {
          one.resolve(checkReply(one.request, { header, succeeded, responses: inner }));
        } catch (cause) {
          one.reject(foreignData("the reply to a call", cause));
        }
      });
    } catch (error) {
      for (const one of batch) {
        if (!isRefused(error)) one.reject(error);
        else if (!expired.has(one)) this.#sendAlone(one);
      }
    }
  }
}

function isRefused(error: unknown): boolean {
  return error instanceof StoreError && error.outcome === "not_applied";
}

/** The key that the request deletes, if it does nothing else: a plain delete costs less. */
function onlyDeleted({ compare = [], success = [], failure = [] }: TxnRequest): Buffer | null {
  const [only] = success;
  if (!only || !("request_delete_range" in only)) return null;
  const isSole = compare.length === 0 && success.length === 1 && failure.length === 0;
  return isSole ? only.request_delete_range.key : null;
}
