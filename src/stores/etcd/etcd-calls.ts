/**
 * Calls to etcd that always settle, and say what is known about their effect.
 *
 * The promise of a client may never settle, and one whose time is up may still be sent when the
 * connection comes back: every call has a deadline that the transport keeps, and a timer of our own
 * behind it. Clients may send a request again by themselves: each sending is counted, because a
 * copy that was sent before the one answered may arrive after it.
 */
import { StoreError } from "../../errors.js";
import type { Port } from "../../time/port.js";
import { within } from "../../time/timers.js";
import type {
  CallOptions,
  DeleteReply,
  EtcdClient,
  EtcdStream,
  KeepAliveReply,
  RangeReply,
  RangeRequest,
  TxnReply,
  TxnRequest,
} from "./etcd-client.js";

/** The timer comes after the transport's own deadline, which tells more. */
const TIMER_SLACK_MS = 100;

/** Refused by etcd itself, and it will be refused again. */
const FINAL = /database space exceeded|permission denied|user name is empty|authentication failed/;
/** Refused by etcd itself, before anything was changed. */
const REFUSED = /lease not found|invalid auth token|too many (requests|operations)|duplicate key/;

export class EtcdCalls {
  readonly #client: EtcdClient;
  readonly #port: Port;

  constructor(client: EtcdClient, port: Port) {
    this.#client = client;
    this.#port = port;
  }

  /** `sendings` counts up for each time that the request leaves this process. */
  txn(request: TxnRequest, limitMs: number, sendings?: { count: number }): Promise<TxnReply> {
    return this.#settle(limitMs, this.#client.kv.txn(request, this.#options(limitMs, sendings)));
  }

  range(request: RangeRequest, limitMs: number): Promise<RangeReply> {
    return this.#settle(limitMs, this.#client.kv.range(request, this.#options(limitMs)));
  }

  delete(key: Buffer, limitMs: number): Promise<DeleteReply> {
    return this.#settle(limitMs, this.#client.kv.deleteRange({ key }, this.#options(limitMs)));
  }

  async grantLease(leaseNumber: string, ttlMs: number, limitMs: number): Promise<void> {
    const request = { TTL: Math.ceil(ttlMs / 1000), ID: leaseNumber };
    const { leaseClient } = this.#client;
    try {
      await this.#settle(limitMs, leaseClient.leaseGrant(request, this.#options(limitMs)));
    } catch (error) {
      // The id is ours alone: an earlier sending of this very request made it.
      if (!causeText(error).includes("lease already exists")) throw error;
    }
  }

  async revokeLease(leaseNumber: string, limitMs: number): Promise<void> {
    const { leaseClient } = this.#client;
    const request = { ID: leaseNumber };
    await this.#settle(limitMs, leaseClient.leaseRevoke(request, this.#options(limitMs)));
  }

  /** -1 when there is no such lease. */
  async leaseSeconds(leaseNumber: string, limitMs: number): Promise<number> {
    const { leaseClient } = this.#client;
    const asked = leaseClient.leaseTimeToLive({ ID: leaseNumber }, this.#options(limitMs));
    return Number((await this.#settle(limitMs, asked)).TTL);
  }

  /**
   * A stream for a single keep-alive: nothing can be wrong with it that was not wrong a moment ago.
   */
  async keepAlive(leaseNumber: string, limitMs: number): Promise<KeepAliveReply> {
    let stream: EtcdStream<{ readonly ID: string }, KeepAliveReply> | undefined;
    let isOver = false;
    const replied = this.#client.leaseClient.leaseKeepAlive().then((opened) => {
      stream = opened;
      return new Promise<KeepAliveReply>((resolve, reject) => {
        opened.on("data", resolve);
        opened.on("error", reject);
        opened.on("end", () => reject(new Error("The stream ended without an answer.")));
        if (isOver) hangUp(opened);
        else opened.write({ ID: leaseNumber });
      });
    });
    try {
      return await this.#settle(limitMs, replied);
    } finally {
      isOver = true;
      if (stream) hangUp(stream);
    }
  }

  #options(limitMs: number, sendings?: { count: number }): CallOptions {
    const deadline = this.#port.clock.wallUs() / 1000 + limitMs;
    if (!sendings) return { deadline };
    const count: NonNullable<CallOptions["interceptors"]>[number] = (options, next) => {
      sendings.count += 1;
      return next(options);
    };
    return { deadline, interceptors: [count] };
  }

  async #settle<T>(limitMs: number, call: Promise<T>): Promise<T> {
    try {
      return await within(this.#port.timers, limitMs + TIMER_SLACK_MS, call);
    } catch (error) {
      throw storeError(error);
    }
  }
}

/** Ended first: the client takes a stream that is cancelled while open for a host that failed. */
export function hangUp(stream: EtcdStream<never, never> | EtcdStream<never, unknown>): void {
  stream.end();
  stream.cancel();
}

/** The session that the request relied on is over. */
export function isLeaseGone(error: unknown): boolean {
  return causeText(error).includes("lease not found");
}

export function isOutOfSpace(error: unknown): boolean {
  return causeText(error).includes("database space exceeded");
}

function storeError(cause: unknown): StoreError {
  const text = cause instanceof Error ? cause.message : String(cause);
  const isFinal = FINAL.test(text);
  const outcome = isFinal || REFUSED.test(text) ? "not_applied" : "unknown";
  return new StoreError(`etcd: ${text}`, { outcome, retryable: !isFinal, cause });
}

function causeText(error: unknown): string {
  const cause = error instanceof StoreError ? error.cause : error;
  return cause instanceof Error ? cause.message : "";
}
