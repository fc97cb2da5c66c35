import { assert } from "../../assert.js";
import type { Claim } from "../../store.js";
import type { Entry, LockId, OwnEntry } from "../sequencer/sequencer.js";
import type { EntryNumber } from "./entry-numbers.js";
import type { RangeRequest } from "./etcd-client.js";
import type { EtcdSession } from "./etcd-session.js";
import type { Layout } from "./layout.js";

/** An entry of this process, with its key and its queue. */
export class EtcdEntry implements OwnEntry {
  readonly lock: LockId;
  readonly claim: Claim;
  readonly id: string;
  readonly text: string;
  readonly key: Buffer;
  /** All keys of its queue, without their values. */
  readonly queue: RangeRequest & { readonly range_end: Buffer };
  /** The session that made it; of one made by another process, the session that resumed it. */
  readonly maker: EtcdSession;
  /** Its name within the queue; null once that may be used again, and for a resumed entry. */
  number: EntryNumber | null;
  token = 0n;
  isWithdrawn = false;
  /** A copy of the request that makes the entry may still be under way. */
  isDoubtful = false;
  /** etcd refused to make the entry, and no copy of the request is under way. */
  isRefused = false;
  /** A copy of any other request about the entry may still be under way. */
  mayEcho = false;
  /** The id of the session that it was last asked to move to. */
  boundTo = "";
  /** How many requests to move it may have a copy under way. */
  bindings = 0;

  constructor(
    layout: Layout,
    claim: Claim,
    made: {
      readonly id: string;
      readonly text: string;
      readonly number: EntryNumber | null;
      readonly maker: EtcdSession;
    },
  ) {
    const { space, name } = claim;
    this.lock = { space, name };
    this.claim = claim;
    this.id = made.id;
    this.text = made.text;
    this.number = made.number;
    this.maker = made.maker;
    this.queue = layout.queue(this.lock, "plain");
    this.key = Buffer.concat([this.queue.key, Buffer.from(made.id)]);
  }

  /** As a listing shows it. */
  listed(session: string): Entry {
    const { mode, weight, limit } = this.claim;
    return { id: this.id, mode, weight, limit, token: this.token, session, text: null };
  }
}

export function etcdEntry(entry: OwnEntry): EtcdEntry {
  assert(entry instanceof EtcdEntry, "an entry comes back to the store that made it");
  return entry;
}
