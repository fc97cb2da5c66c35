/**
 * Transactions of one session that are asked for in one turn of the event loop travel as one.
 *
 * Each stays a transaction of its own inside. What is written together has one revision, so a batch
 * never has two of one line: both entries would have the same token, and a watch that starts after
 * the listing of the one would miss the other. One alone is sent as it is, and not delayed. When
 * etcd refuses a batch, it refuses all of it for the sake of one: then each is sent for itself.
 */
import { StoreError } from "../../errors.js";
import { foreignData } from "../../foreign-data.js";
import type { Port } from "../../time/port.js";
import { within } from "../../time/timers.js";
import { checkReply, type EtcdCalls } from "./etcd-calls.js";
import type { TxnReply, TxnRequest } from "./etcd-client.js";
import type { Sendings } from "./timed-call.js";

/** With the operations inside, well below the 128 that etcd takes. */
const MOST_IN_BATCH = 64;

interface Waiting {
  readonly line: string;
  readonly request: TxnRequest;
  readonly limitMs: number;
  readonly sendings: Sendings;
  resolve(reply: TxnReply): void;
  reject(error: unknown): void;
}

export class EtcdBatch {
  readonly #calls: EtcdCalls;
  readonly #port: Port;
  #waiting: Waiting[] = [];

  constructor(calls: EtcdCalls, port: Port) {
    this.#calls = calls;
    this.#port = port;
  }

  /** `line` names what the request touches; `sendings` counts up as it is sent. */
  txn(line: string, request: TxnRequest, limitMs: number, sendings: Sendings): Promise<TxnReply> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ line, request, limitMs, sendings, resolve, reject });
      if (this.#waiting.length === 1) this.#port.timers.soon(() => this.#flush());
    });
  }

  #flush(): void {
    let rest = this.#waiting;
    this.#waiting = [];
    while (rest.length > 0) {
      const lines = new Set<string>();
      const batch: Waiting[] = [];
      const later: Waiting[] = [];
      for (const one of rest) {
        const joins = batch.length < MOST_IN_BATCH && !lines.has(one.line);
        lines.add(one.line);
        (joins ? batch : later).push(one);
      }
      if (batch.length === 1) this.#sendAlone(batch[0] as Waiting);
      else void this.#send(batch);
      rest = later;
    }
  }

  #sendAlone({ request, limitMs, sendings, resolve, reject }: Waiting): void {
    const key = onlyDeleted(request);
    if (key === null) this.#calls.txn(request, limitMs, sendings).then(resolve, reject);
    else {
      this.#calls.delete(key, limitMs, sendings).then((reply) => {
        const responses = [{ response_delete_range: reply }];
        resolve({ header: reply.header, succeeded: true, responses });
      }, reject);
    }
  }

  async #send(batch: readonly Waiting[]): Promise<void> {
    const sendings = { count: 0 };
    const limitMs = Math.max(...batch.map((one) => one.limitMs));
    const success = batch.map(({ request }) => ({ request_txn: request }));
    const sent = this.#calls.txn({ success }, limitMs, sendings);
    const shared = sent.finally(() => {
      for (const one of batch) one.sendings.count += sendings.count;
    });
    shared.catch((error) => {
      // A batch that etcd refused has no effect: it does not count as sent.
      if (isRefused(error)) for (const one of batch) one.sendings.count -= 1;
    });
    try {
      // Whoever has less time than others of its batch does not wait for as long.
      for (const one of batch) {
        if (one.limitMs < limitMs) {
          within(this.#port.timers, one.limitMs, shared).catch(one.reject);
        }
      }
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
        if (isRefused(error)) this.#sendAlone(one);
        else one.reject(error);
      }
    }
  }
}

function isRefused(error: unknown): boolean {
  return error instanceof StoreError && error.outcome === "not_applied";
}

/** The key, where the request does nothing else than to delete it: that is a lighter call. */
function onlyDeleted({ compare = [], success = [], failure = [] }: TxnRequest): Buffer | null {
  const [only] = success;
  if (!only || !("request_delete_range" in only)) return null;
  const isSole = compare.length === 0 && success.length === 1 && failure.length === 0;
  return isSole ? only.request_delete_range.key : null;
}
