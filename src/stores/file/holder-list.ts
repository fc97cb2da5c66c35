import { joined, type Occupancy, VACANT } from "../../rules/fits.js";
import type { Holder } from "../../rules/ledger-state.js";
import { MOST_INLINE, type NameRecord } from "./name-record.js";

/** The holders of one name. */
export interface Holders {
  readonly isFull: boolean;
  occupancy(): Occupancy;
  get(owner: string): Holder | undefined;
  /** In the order of their tokens. */
  all(): Holder[];
  /** The one whose span has this token. */
  with(token: number): Holder | undefined;
  offers(client: string, most: number): Holder[];
  nextToExpire(): Holder | undefined;
  add(holder: Holder): void;
  update(holder: Holder): void;
  remove(holder: Holder): void;
}

/** A few holders, within the record of their name. */
export class HolderList implements Holders {
  readonly #record: NameRecord;

  constructor(record: NameRecord) {
    this.#record = record;
  }

  get isFull(): boolean {
    return this.all().length >= MOST_INLINE;
  }

  occupancy(): Occupancy {
    let sum = VACANT;
    for (const holder of this.all()) sum = joined(sum, holder);
    return sum;
  }

  get(owner: string): Holder | undefined {
    return this.all().find((holder) => holder.owner === owner);
  }

  all(): Holder[] {
    return this.#record.holders ?? [];
  }

  with(token: number): Holder | undefined {
    return this.all().find((one) => token >= one.token && token < one.token + one.span);
  }

  offers(client: string, most: number): Holder[] {
    const offers = this.all().filter((one) => one.client === client && !one.confirmed);
    return offers.slice(0, most);
  }

  nextToExpire(): Holder | undefined {
    let next: Holder | undefined;
    for (const holder of this.all()) {
      if (!next || holder.expiryUs < next.expiryUs) next = holder;
    }
    return next;
  }

  add(holder: Holder): void {
    const { owner, client, mode, weight, limit, ttlUs, span, meta } = holder;
    const { token, expiryUs, grantedUs, confirmed } = holder;
    // Written out: a spread takes several times as long, and this is in every grant.
    const added: Holder = {
      owner,
      client,
      mode,
      weight,
      limit,
      ttlUs,
      span,
      meta,
      token,
      expiryUs,
      grantedUs,
      confirmed,
    };
    if (this.#record.holders) this.#record.holders.push(added);
    else this.#record.holders = [added];
  }

  /** It is part of the record, and was changed with it. */
  update(): void {}

  remove({ owner }: Holder): void {
    const rest = this.all().filter((holder) => holder.owner !== owner);
    this.#record.holders = rest.length > 0 ? rest : undefined;
  }
}
