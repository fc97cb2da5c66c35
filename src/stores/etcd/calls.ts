/**
 * Calls to etcd that always settle and say what is known about their effect.
 *
 * Each call has a time limit here and is cancelled in the transport when that ends. A gRPC deadline
 * would cost a timer and a header for each call. The client may send a request twice, and an
 * earlier sending may arrive after the one that was answered, so each sending is counted.
 */
import { StoreError } from "../../errors/index.js";
import { foreignData, Unreadable } from "../../events/foreign-data.js";
import { type Limited, Limits } from "../../time/limits.js";
import type { Runtime } from "../../time/runtime.js";
import { TimeLimitError, within } from "../../time/timers.js";
import type { EtcdClient } from "./client.js";
import { etcdError, isLeaseThere } from "./errors.js";
import {
  ALARMS,
  DELETE,
  type DeleteReply,
  GRANT,
  KEEP_ALIVE,
  type LeaseReply,
  MEMBERS,
  type Member,
  type Method,
  RANGE,
  type RangeReply,
  type RangeRequest,
  REVOKE,
  STATUS,
  type StatusReply,
  TIME_TO_LIVE,
  TXN,
  type TxnReply,
  type TxnRequest,
} from "./wire/messages.js";

/** How often a request has left this process. */
export interface Sendings {
  count: number;
}

/** Starts the sendings of one request. */
export interface Sending {
  /** Throws if the call has ended. `send` sends the request and returns what can be cancelled. */
  start(send: () => { cancel(): void }): void;
}

/** A call with a time limit. */
export class TimedCall implements Limited, Sending {
  readonly dueMs: number;
  heapIndex = -1;
  readonly #limitMs: number;
  readonly #sendings: Sendings;
  readonly #onLate: (error: Error) => void;
  #sent: { cancel(): void } | null = null;
  #isLate = false;

  constructor(limitMs: number, nowMs: number, sendings: Sendings, onLate: (error: Error) => void) {
    this.#limitMs = limitMs;
    this.dueMs = nowMs + limitMs;
    this.#sendings = sendings;
    this.#onLate = onLate;
  }

  start(send: () => { cancel(): void }): void {
    // Nobody waits for the call any more, so nothing may be sent: the caller counts on that.
    if (this.#isLate) throw new TimeLimitError(this.#limitMs);
    this.#sendings.count += 1;
    this.#sent = send();
  }

  onDue(): void {
    this.#isLate = true;
    this.#onLate(new TimeLimitError(this.#limitMs));
    this.#sent?.cancel();
  }

  onStop(): void {
    this.#onLate(new Error("The store was closed before etcd answered."));
  }
}

export class EtcdCalls {
  readonly #client: EtcdClient;
  readonly #runtime: Runtime;
  readonly #limits: Limits;
  readonly #hosts: string;

  /** `hosts`: where etcd is, for messages. */
  constructor(client: EtcdClient, runtime: Runtime, hosts: string) {
    this.#client = client;
    this.#runtime = runtime;
    this.#hosts = hosts;
    this.#limits = new Limits(runtime);
  }

  /** `sendings` counts each sending of the request. */
  txn(request: TxnRequest, limitMs: number, sendings?: Sendings): Promise<TxnReply> {
    return this.#call(TXN, request, limitMs, sendings, (reply) => checkReply(request, reply));
  }

  range(request: RangeRequest, limitMs: number): Promise<RangeReply> {
    return this.#call(RANGE, request, limitMs);
  }

  delete(key: Buffer, limitMs: number, sendings?: Sendings): Promise<DeleteReply> {
    return this.#call(DELETE, { key }, limitMs, sendings);
  }

  async grantLease(id: bigint, ttlMs: number, limitMs: number): Promise<void> {
    try {
      await this.#call(GRANT, { ttl: BigInt(Math.ceil(ttlMs / 1000)), id }, limitMs);
    } catch (error) {
      // The id is random and ours: an earlier sending of this request made the lease.
      if (!isLeaseThere(error)) throw error;
    }
  }

  async revokeLease(id: bigint, limitMs: number): Promise<void> {
    await this.#call(REVOKE, { id }, limitMs);
  }

  keepAlive(id: bigint, limitMs: number): Promise<LeaseReply> {
    return this.#call(KEEP_ALIVE, { id }, limitMs);
  }

  /** -1 if there is no such lease. */
  async leaseSeconds(id: bigint, limitMs: number): Promise<number> {
    return Number((await this.#call(TIME_TO_LIVE, { id }, limitMs)).ttl);
  }

  /** The state of the member that answers. */
  status(limitMs: number): Promise<StatusReply> {
    return this.#call(STATUS, {}, limitMs);
  }

  async alarms(limitMs: number): Promise<readonly string[]> {
    const { alarms } = await this.#call(ALARMS, { action: "Get" }, limitMs);
    return alarms.map(({ alarm }) => alarm);
  }

  async members(limitMs: number): Promise<readonly Member[]> {
    return (await this.#call(MEMBERS, {}, limitMs)).members;
  }

  /** The error of a request whose time ended before that of the call that carries it. */
  lateError(error: TimeLimitError): StoreError {
    return etcdError(error, this.#hosts);
  }

  /** Ends all open calls. */
  close(): void {
    this.#limits.stop();
  }

  #call<Request, Reply>(
    method: Method<Request, Reply>,
    request: Request,
    limitMs: number,
    sendings: Sendings = { count: 0 },
    check: (reply: Reply) => Reply = (reply) => reply,
  ): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const fail = (error: unknown): void => reject(etcdError(error, this.#hosts));
      const call = new TimedCall(limitMs, this.#runtime.clock.nowMs(), sendings, fail);
      this.#limits.add(call);
      this.#client.call(method, request, call).then(
        (reply) => {
          this.#limits.remove(call);
          try {
            resolve(check(reply));
          } catch (error) {
            fail(error);
          }
        },
        (error: unknown) => {
          this.#limits.remove(call);
          fail(error);
        },
      );
    });
  }
}

/** The reply, if it answers every operation: a missing answer must not mean "no such key". */
function checkReply({ success = [], failure = [] }: TxnRequest, reply: TxnReply): TxnReply {
  const { length } = reply.succeeded ? success : failure;
  if (reply.responses.length !== length) throw new Unreadable(`${length} responses`);
  return reply;
}

/** etcd accepts 128 operations in a transaction, not counting those in nested transactions. */
const MAX_IN_BATCH = 64;

interface Pending {
  readonly queue: string;
  readonly request: TxnRequest;
  readonly limitMs: number;
  readonly sendings: Sendings;
  resolve(reply: TxnReply): void;
  reject(error: unknown): void;
}

/**
 * Sends the transactions that one session asks for in one tick of the event loop as one.
 *
 * Each becomes a nested transaction. All writes of a transaction have the same revision, so a batch
 * never has two requests for one queue: both entries would have the same token, and a watch that
 * starts after the listing of one would miss the other. If etcd refuses one request, it refuses the
 * batch: each request is then sent by itself.
 */
export class EtcdBatch {
  readonly #calls: EtcdCalls;
  readonly #runtime: Runtime;
  #pending: Pending[] = [];

  constructor(calls: EtcdCalls, runtime: Runtime) {
    this.#calls = calls;
    this.#runtime = runtime;
  }

  /** `queue` names the queue of the request; `sendings` counts its sendings. */
  txn(queue: string, request: TxnRequest, limitMs: number, sendings: Sendings): Promise<TxnReply> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ queue, request, limitMs, sendings, resolve, reject });
      if (this.#pending.length === 1) this.#runtime.timers.soon(() => this.#flush());
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
        const joins = batch.length < MAX_IN_BATCH && !queues.has(one.queue);
        queues.add(one.queue);
        (joins ? batch : later).push(one);
      }
      const [first] = batch;
      if (first && batch.length === 1) this.#sendSingle(first);
      else void this.#send(batch);
      rest = later;
    }
  }

  #sendSingle({ request, limitMs, sendings, resolve, reject }: Pending): void {
    const key = onlyDeleted(request);
    if (key === null) this.#calls.txn(request, limitMs, sendings).then(resolve, reject);
    else {
      this.#calls.delete(key, limitMs, sendings).then((reply) => {
        const responses = [{ responseDeleteRange: reply }];
        resolve({ header: reply.header, succeeded: true, responses });
      }, reject);
    }
  }

  async #send(batch: readonly Pending[]): Promise<void> {
    const sendings = { count: 0 };
    const limitMs = Math.max(...batch.map((one) => one.limitMs));
    const success = batch.map(({ request }) => ({ requestTxn: request }));
    const sent = this.#calls.txn({ success }, limitMs, sendings);
    const shared = sent.finally(() => {
      for (const one of batch) one.sendings.count += sendings.count;
    });
    shared.catch((error) => {
      // A batch that etcd refused had no effect, so its sending does not count.
      if (isRefused(error)) for (const one of batch) one.sendings.count -= 1;
    });
    // A request whose limit ends before that of the batch fails then. Its caller counts on its not
    // being sent again.
    const expired = new Set<Pending>();
    for (const one of batch) {
      if (one.limitMs === limitMs) continue;
      within(this.#runtime.timers, one.limitMs, shared).catch((error) => {
        if (!(error instanceof TimeLimitError)) return;
        expired.add(one);
        one.reject(this.#calls.lateError(error));
      });
    }
    try {
      const { header, responses } = await shared;
      batch.forEach((one, index) => {
        const { succeeded = false, responses: inner = [] } = responses[index]?.responseTxn ?? {};
        try {
          one.resolve(checkReply(one.request, { header, succeeded, responses: inner }));
        } catch (cause) {
          one.reject(foreignData("the reply to a call", cause));
        }
      });
    } catch (error) {
      for (const one of batch) {
        if (!isRefused(error)) one.reject(error);
        else if (!expired.has(one)) this.#sendSingle(one);
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
  if (!only || !("requestDeleteRange" in only)) return null;
  const isSole = compare.length === 0 && success.length === 1 && failure.length === 0;
  return isSole ? only.requestDeleteRange.key : null;
}
