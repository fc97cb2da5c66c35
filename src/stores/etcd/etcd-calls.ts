/**
 * Calls to etcd that always settle, and that tell what is known about their effect.
 *
 * The promise of a client may never settle, and a request whose time is up may still be sent when
 * the connection comes back. So each call has a time limit of ours, and is cancelled in the
 * transport when that is over. (A deadline of the transport would cost a timer and a header for
 * each call.) A client may send a request again by itself. Each sending is counted, because a copy
 * that was sent before the answered one may arrive after it.
 */
import type { StoreError } from "../../errors.js";
import { Unreadable } from "../../foreign-data.js";
import { Limits } from "../../time/limits.js";
import type { Port } from "../../time/port.js";
import { type TimeLimitError, within } from "../../time/timers.js";
import type {
  CallOptions,
  DeleteReply,
  EtcdClient,
  EtcdStream,
  KeepAliveReply,
  Member,
  RangeReply,
  RangeRequest,
  StatusReply,
  TxnReply,
  TxnRequest,
} from "./etcd-client.js";
import { etcdError, isLeaseThere, isNotConnected, isNotTried } from "./failure.js";
import { type Sendings, TimedCall } from "./timed-call.js";

export class EtcdCalls {
  readonly #client: EtcdClient;
  readonly #port: Port;
  readonly #limits: Limits;
  readonly #hosts: string;
  #lastTrouble: unknown;

  /** `hosts`: where etcd is, for messages; "" where it is not known. */
  constructor(client: EtcdClient, port: Port, hosts: string) {
    this.#client = client;
    this.#port = port;
    this.#hosts = hosts;
    this.#limits = new Limits(port);
  }

  /** `sendings` counts each time that the request leaves this process. */
  txn(request: TxnRequest, limitMs: number, sendings?: Sendings): Promise<TxnReply> {
    const send = async (options: CallOptions): Promise<TxnReply> =>
      checkReply(request, await this.#client.kv.txn(request, options));
    return this.#call(limitMs, send, sendings);
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
      // The id is random and ours: an earlier sending of this request made the lease.
      if (!isLeaseThere(error)) throw error;
    }
  }

  async revokeLease(leaseNumber: string, limitMs: number): Promise<void> {
    const { leaseClient } = this.#client;
    await this.#call(limitMs, (options) => leaseClient.leaseRevoke({ ID: leaseNumber }, options));
  }

  /** The state of the member that answers. */
  status(limitMs: number): Promise<StatusReply> {
    return this.#call(limitMs, async (options) => this.#maintenance.status(options));
  }

  async alarms(limitMs: number): Promise<readonly string[]> {
    const request = { action: "Get" } as const;
    const { alarms } = await this.#call(limitMs, async (options) =>
      this.#maintenance.alarm(request, options),
    );
    return alarms.map(({ alarm }) => alarm);
  }

  async members(limitMs: number): Promise<readonly Member[]> {
    const { members } = await this.#call(limitMs, async (options) => {
      if (this.#client.cluster) return this.#client.cluster.memberList({}, options);
      throw new Error("The client does not list members.");
    });
    return members;
  }

  /** A client that was passed in may lack it. */
  get #maintenance(): NonNullable<EtcdClient["maintenance"]> {
    if (this.#client.maintenance) return this.#client.maintenance;
    throw new Error("The client does not ask members for their state.");
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

  /** A new stream for each keep-alive: an old one may be broken without a sign. */
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
      throw this.#error(error);
    } finally {
      isOver = true;
      if (stream) hangUp(stream);
    }
  }

  /** The error of a request whose own time was over before that of the call that carries it. */
  lateError(error: TimeLimitError): StoreError {
    return this.#error(error);
  }

  /** Ends all calls that are under way. */
  close(): void {
    this.#limits.stop();
  }

  #error(cause: unknown): StoreError {
    // A client that fails without a try does not tell why earlier tries failed.
    if (isNotTried(cause)) return etcdError(this.#lastTrouble ?? cause, this.#hosts);
    if (isNotConnected(cause)) this.#lastTrouble = cause;
    return etcdError(cause, this.#hosts);
  }

  #call<T>(
    limitMs: number,
    send: (options: CallOptions) => Promise<T>,
    sendings: Sendings = { count: 0 },
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const call = new TimedCall(limitMs, this.#port.clock.nowMs(), sendings, (error) =>
        reject(this.#error(error)),
      );
      this.#limits.add(call);
      send(call.options).then(
        (reply) => {
          this.#limits.remove(call);
          resolve(reply);
        },
        (error) => {
          this.#limits.remove(call);
          reject(this.#error(error));
        },
      );
    });
  }
}

/** The reply, if it answers every operation: a missing answer must not mean "no such key". */
export function checkReply<R extends Pick<TxnReply, "succeeded" | "responses">>(
  { success = [], failure = [] }: TxnRequest,
  reply: R,
): R {
  const { length } = reply.succeeded ? success : failure;
  if (reply.responses.length !== length) throw new Unreadable(`${length} responses`);
  return reply;
}

/** The client counts a stream that is cancelled before its end as a failure of the host. */
export function hangUp(stream: EtcdStream<never, never> | EtcdStream<never, unknown>): void {
  stream.end();
  stream.cancel();
}
