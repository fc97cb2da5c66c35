import type { Claim } from "../../store.js";
import type { OwnEntry, Place } from "../sequencer/sequencer.js";
import type { EtcdKeys } from "./etcd-keys.js";

/** An entry of this process, with its key. */
export class EtcdEntry implements OwnEntry {
  readonly place: Place;
  readonly claim: Claim;
  readonly id: string;
  readonly text: string;
  readonly key: Buffer;
  order = 0n;
  isDoubtful = false;
  isWithdrawn = false;

  constructor(keys: EtcdKeys, place: Place, claim: Claim, id: string, text: string) {
    this.place = place;
    this.claim = claim;
    this.id = id;
    this.text = text;
    this.key = keys.entry(place, id);
  }
}
