import type { Listing, LockId } from "../sequencer/sequencer.js";
import type { EtcdCalls } from "./etcd-calls.js";
import type { Layout } from "./layout.js";

/** Reads queues from etcd. */
export class QueueReader {
  readonly #calls: EtcdCalls;
  readonly #layout: Layout;

  constructor(calls: EtcdCalls, layout: Layout) {
    this.#calls = calls;
    this.#layout = layout;
  }

  /** The queue as it is now: the member that answers asks the leader. */
  async list(lock: LockId, look: "plain" | "texts", limitMs: number): Promise<Listing> {
    const { header, kvs } = await this.#calls.range(this.#layout.queue(lock, look), limitMs);
    return this.#layout.listing(lock, header, kvs);
  }

  /**
   * The queue at a revision, or later, without texts. The member that told of the revision has it,
   * and answers without asking the leader.
   */
  async listSince(lock: LockId, revision: bigint, limitMs: number): Promise<Listing> {
    const request = { ...this.#layout.queue(lock, "plain"), serializable: true };
    const { header, kvs } = await this.#calls.range(request, limitMs);
    if (BigInt(header.revision) < revision) return this.list(lock, "plain", limitMs);
    return this.#layout.listing(lock, header, kvs);
  }
}
