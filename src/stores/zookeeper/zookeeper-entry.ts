import type { Claim } from "../../contract/store.js";
import { assert } from "../../errors/assert.js";
import type { LockId, OwnEntry } from "../../families/session/sequencer.js";

/** An entry of this process, with its znode and its queue. */
export class ZookeeperEntry implements OwnEntry {
  readonly lock: LockId;
  readonly claim: Claim;
  readonly text: string;
  /** The znode that all entries of the lock are children of. */
  readonly queue: string;
  /** The name of the znode, up to the sequence number that ZooKeeper adds. No other has it. */
  readonly prefix: string;
  /** The name of the znode; "" until ZooKeeper has answered that the znode was made. */
  id = "";
  token = 0n;
  isWithdrawn = false;
  /** How many requests to make the znode have no answer: each may have made one, or may still. */
  unanswered = 0;

  constructor(claim: Claim, queue: string, prefix: string, text: string) {
    const { space, name } = claim;
    this.lock = { space, name };
    this.claim = claim;
    this.text = text;
    this.queue = queue;
    this.prefix = prefix;
  }

  get path(): string {
    return `${this.queue}/${this.id}`;
  }

  get isMade(): boolean {
    return this.id !== "";
  }

  /** ZooKeeper made the znode in the transaction `czxid`. */
  made(id: string, czxid: bigint): void {
    this.id = id;
    this.token = czxid;
  }
}

export function zookeeperEntry(entry: OwnEntry): ZookeeperEntry {
  assert(entry instanceof ZookeeperEntry, "an entry comes back to the store that made it");
  return entry;
}
