import type { Mode } from "../../rules/fits.js";
import type { Claim } from "../../store.js";
import type { Entry, OwnEntry, Place } from "../sequencer/sequencer.js";
import type { EntryNumber } from "./entry-numbers.js";
import type { RangeRequest } from "./etcd-client.js";
import type { EtcdKeys } from "./etcd-keys.js";

/** An entry of this process, with its key and its line. */
export class EtcdEntry implements OwnEntry {
  readonly place: Place;
  readonly claim: Claim;
  readonly id: string;
  readonly text: string;
  /** Null for an entry of another process. */
  readonly number: EntryNumber | null;
  readonly key: Buffer;
  /** All keys of its line, without what is written in them. */
  readonly line: RangeRequest & { readonly range_end: Buffer };
  order = 0n;
  isDoubtful = false;
  isWithdrawn = false;
  /** A copy of a request about it may still be under way, or it lives on in another session. */
  mayEcho = false;
  /** The session that it was last asked to move to. */
  boundTo = "";
  /** Requests to move it, of which a copy may be under way. */
  bindings = 0;

  constructor(
    keys: EtcdKeys,
    claim: Claim,
    { id, text, number }: { id: string; text: string; number: EntryNumber | null },
  ) {
    const place = { space: claim.space, name: claim.name };
    this.place = place;
    this.claim = claim;
    this.id = id;
    this.text = text;
    this.number = number;
    this.line = keys.line(place, "plain");
    this.key = Buffer.concat([this.line.key, Buffer.from(id)]);
  }

  /** As the store lists it. */
  listed(session: string): Entry {
    const { mode, weight, limit }: { mode: Mode; weight: number; limit: number } = this.claim;
    return { id: this.id, mode, weight, limit, order: this.order, session, text: null };
  }
}
