/**
 * Calls to etcd that always settle, and say what is known about their effect.
 *
 * The promise of a client may never settle, and one whose time is up may still be sent when the
 * connection comes back: a call has a limit of ours, and is cancelled in the transport when that is
 * over. (A deadline of the transport would be a timer and a header for each call.) Clients may send
 * a request again by themselves: each sending is counted, because a copy that was sent before the
 * one answered may arrive after it.
 */
import { StoreError } from "../../errors.js";
import { Limits } from "../../time/limits.js";
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
import { type Sendings, TimedCall } from "./timed-call.js";

/** Refused by etcd itself, and it will be refused again. */
const FINAL = /database space exceeded|permission denied|user name is empty|authentication failed/;
/** Refused by etcd itself, before anything was changed. */
const REFUSED = /lease not found|invalid auth token|too many (requests|operations)|duplicate key/;

export class EtcdCalls {
  readonly #client: EtcdClient;
  readonly #port: Port;
  readonly #limits: Limits;

  constructor(client: EtcdClient, port: Port) {
    this.#client = client;
    this.#port = port;
    this.#limits = new Limits(port);
  }

  /** `sendings` counts up for each time that the request leaves this process. */
  txn(request: TxnRequest, limitMs: number, sendings?: Sendings): Promise<TxnReply> {
    return this.#call(limitMs, (options) => this.#client.kv.txn(request, options), sendings);
  }

  range(request: RangeRequest, limitMs: number): Promise<RangeReply> {
    return this.#call(limitMs, (options) => this.#client.kv.range(request, options));
  }

  delete(key: Buffer, limitMs: number, sendings?: Sendings): Promise<DeleteReply> {
    const { kv } = this.#client;
    return this.#call(limitMs, (options) => kv.deleteRange({ key }, options), sendings);
  }

  async grantLease(leaseNumber: string, ttlMs: number, limitMs: number): Promise<void> {
    const request = { TTL: Math.ceil(ttlMs / 1000), ID: leaseNumber };
    const { leaseClient } = this.#client;
    try {
      await this.#call(limitMs, (options) => leaseClient.leaseGrant(request, options));
    } catch (error) {
      // The id is ours alone: an earlier sending of this very request made it.
      if (!causeText(error).includes("lease already exists")) throw error;
    }
  }

  async revokeLease(leaseNumber: string, limitMs: number): Promise<void> {
    const { leaseClient } = this.#client;
    await this.#call(limitMs, (options) => leaseClient.leaseRevoke({ ID: leaseNumber }, options));
  }

  /** -1 when there is no such lease. */
  async leaseSeconds(leaseNumber: string, limitMs: number): Promise<number> {
    const { leaseClient } = this.#client;
    const request = { ID: leaseNumber };
    const { TTL } = await this.#call(limitMs, (options) =>
      leaseClient.leaseTimeToLive(request, options),
    );
    return Number(TTL);
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
      return await within(this.#port.timers, limitMs, replied);
    } catch (error) {
      throw storeError(error);
    } finally {
      isOver = true;
      if (stream) hangUp(stream);
    }
  }

  /** Nothing is under way any more. */
  close(): void {
    this.#limits.stop();
  }

  #call<T>(
    limitMs: number,
    send: (options: CallOptions) => Promise<T>,
    sendings: Sendings = { count: 0 },
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const call = new TimedCall(limitMs, this.#port.clock.nowMs(), sendings, (error) =>
        reject(storeError(error)),
      );
      this.#limits.add(call);
      send(call.options).then(
        (reply) => {
          this.#limits.remove(call);
          resolve(reply);
        },
        (error) => {
          this.#limits.remove(call);
          reject(storeError(error));
        },
      );
    });
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
