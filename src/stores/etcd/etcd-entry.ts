import type { Mode } from "../../rules/fits.js";
import type { Claim } from "../../store.js";
import type { Entry, OwnEntry, Place } from "../sequencer/sequencer.js";
import type { RangeRequest } from "./etcd-client.js";
import type { EtcdKeys } from "./etcd-keys.js";

/** An entry of this process, with its key and its line. */
export class EtcdEntry implements OwnEntry {
  readonly place: Place;
  readonly claim: Claim;
  readonly id: string;
  readonly text: string;
  readonly key: Buffer;
  /** All keys of its line, without what is written in them. */
  readonly line: RangeRequest & { readonly range_end: Buffer };
  order = 0n;
  isDoubtful = false;
  isWithdrawn = false;

  constructor(keys: EtcdKeys, place: Place, claim: Claim, id: string, text: string) {
    this.place = place;
    this.claim = claim;
    this.id = id;
    this.text = text;
    this.line = keys.line(place, "plain");
    this.key = Buffer.concat([this.line.key, Buffer.from(id)]);
  }

  /** As the store lists it. */
  listed(session: string): Entry {
    const { mode, weight, limit }: { mode: Mode; weight: number; limit: number } = this.claim;
    return { id: this.id, mode, weight, limit, order: this.order, session, text: null };
  }
}
