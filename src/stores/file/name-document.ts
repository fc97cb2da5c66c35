/**
 * The state of one name as one text: for stores that keep a name as a whole, and replace its text
 * only if no one else has done so since it was read. Reading and writing take time in proportion to
 * the text, and the text leads back to exactly the same state.
 */
import { list, oneOf, text, Unreadable, whole } from "../../events/foreign-data.js";
import { joined, type Occupancy, VACANT } from "../../rules/fits.js";
import type { Instant } from "../../rules/ledger-command.js";
import type {
  Holder,
  LedgerState,
  Mark,
  Tombstone,
  Waiter,
  WaitingClient,
} from "../../rules/ledger-state.js";

/** The last token that the store has issued, shared by all names that it covers. */
export interface LastToken {
  last: number;
}

/** The wall clock outlives the clock of the leases, which may start again with the machine. */
interface DatedMark extends Mark {
  readonly untilWallUs: number;
}

interface Client extends WaitingClient {
  heartbeatUs: number;
  waiting: number;
}

const MODES = ["exclusive", "shared"] as const;
const FLAGS = [true, false] as const;

export class NameDocument implements LedgerState {
  readonly key: string;
  readonly #token: LastToken;
  #wallOffsetUs: number;
  /** In the order of their tokens, because grants only append. */
  readonly #holders = new Map<string, Holder>();
  /** In the order of the queue. */
  readonly #waiters = new Map<string, Waiter>();
  readonly #clients = new Map<string, Client>();
  readonly #tombstones = new Map<string, Tombstone>();
  #mark: DatedMark | undefined;
  /** The texts of waiters, tombstones and holders that have not changed since they were written. */
  readonly #texts = new WeakMap<object, string>();

  /**
   * Reads the text of a name; null is the text of a name that nobody uses. Throws if this class did
   * not write the text.
   */
  constructor(key: string, text: string | null, token: LastToken, at: Instant) {
    this.key = key;
    this.#token = token;
    this.#wallOffsetUs = at.wallUs - at.us;
    if (text !== null) this.#read(JSON.parse(text));
  }

  /** Starts a transaction at this moment, on a document that an earlier one has read. */
  startTransaction({ us, wallUs }: Instant): void {
    this.#wallOffsetUs = wallUs - us;
  }

  /** The text to store; null if nothing is left to remember. */
  toText(): string | null {
    const lists = [this.#holders, this.#waiters, this.#tombstones];
    if (!this.#mark && lists.every(({ size }) => size === 0)) return null;
    const holders = this.#listText(this.#holders, holderEntry);
    const waiters = this.#listText(this.#waiters, waiterEntry);
    const clients = JSON.stringify(Array.from(this.#clients.values(), clientEntry));
    const tombstones = this.#listText(this.#tombstones, tombstoneEntry);
    const mark = JSON.stringify(this.#mark ? markEntry(this.#mark) : null);
    return `[${holders},${waiters},${clients},${tombstones},${mark}]`;
  }

  #listText<T extends object>(items: Map<string, T>, entryOf: (item: T) => unknown[]): string {
    const texts = Array.from(items.values(), (item) => {
      let text = this.#texts.get(item);
      if (text === undefined) {
        text = JSON.stringify(entryOf(item));
        this.#texts.set(item, text);
      }
      return text;
    });
    return `[${texts.join(",")}]`;
  }

  #read(parsed: unknown): void {
    const [holders, waiters, clients, tombstones, mark] = list(parsed);
    for (const entry of list(holders)) {
      const holder = readHolder(entry);
      add(this.#holders, holder.owner, holder);
    }
    for (const entry of list(clients)) {
      const client = readClient(entry);
      add(this.#clients, client.id, client);
    }
    for (const entry of list(waiters)) {
      const waiter = readWaiter(entry);
      add(this.#waiters, waiter.owner, waiter);
      const client = this.#clients.get(waiter.client);
      if (!client) throw new Unreadable("the client of each waiter");
      client.waiting += 1;
    }
    for (const { waiting } of this.#clients.values()) {
      if (waiting === 0) throw new Unreadable("a waiter of each client");
    }
    for (const entry of list(tombstones)) {
      const tombstone = readTombstone(entry);
      add(this.#tombstones, tombstone.owner, tombstone);
    }
    if (mark !== null) this.#mark = readMark(mark);
  }

  lastToken(): number {
    return this.#token.last;
  }

  setLastToken(token: number): void {
    this.#token.last = token;
  }

  occupancy(): Occupancy {
    let sum = VACANT;
    for (const holder of this.#holders.values()) sum = joined(sum, holder);
    return sum;
  }

  holder(owner: string): Holder | undefined {
    return this.#holders.get(owner);
  }

  holders(): Iterable<Holder> {
    return this.#holders.values();
  }

  holderWith(token: number): Holder | undefined {
    for (const holder of this.#holders.values()) {
      if (token >= holder.token && token < holder.token + holder.span) return holder;
    }
    return undefined;
  }

  offers(client: string, most: number): readonly Holder[] {
    const offers: Holder[] = [];
    for (const holder of this.#holders.values()) {
      if (offers.length === most) break;
      if (holder.client === client && !holder.confirmed) offers.push(holder);
    }
    return offers;
  }

  nextToExpire(): Holder | undefined {
    let next: Holder | undefined;
    for (const holder of this.#holders.values()) {
      if (!next || holder.expiryUs < next.expiryUs) next = holder;
    }
    return next;
  }

  expired(nowUs: number): Holder | undefined {
    const next = this.nextToExpire();
    return next && next.expiryUs <= nowUs ? next : undefined;
  }

  putHolder(holder: Holder): void {
    this.#holders.set(holder.owner, holder);
  }

  /** The holder is part of the document and has changed with it; its text is written again. */
  updateHolder(holder: Holder): void {
    this.#texts.delete(holder);
  }

  dropHolder({ owner }: Holder): void {
    this.#holders.delete(owner);
  }

  waiting(): number {
    return this.#waiters.size;
  }

  waiter(owner: string): Waiter | undefined {
    return this.#waiters.get(owner);
  }

  waiters(): Iterable<Waiter> {
    return this.#waiters.values();
  }

  head(): Waiter | undefined {
    for (const waiter of this.#waiters.values()) {
      if (!this.#clients.get(waiter.client)?.unresponsive) return waiter;
    }
    return undefined;
  }

  enqueue(waiter: Waiter, { heartbeatUs, goneUs }: { heartbeatUs: number; goneUs: number }): void {
    this.#waiters.set(waiter.owner, waiter);
    const { client: id } = waiter;
    const client = this.#clients.get(id);
    if (!client) {
      this.#clients.set(id, { id, heartbeatUs, goneUs, unresponsive: false, waiting: 1 });
      return;
    }
    client.heartbeatUs = Math.max(client.heartbeatUs, heartbeatUs);
    client.goneUs = Math.max(client.goneUs, goneUs);
    client.waiting += 1;
  }

  dropWaiter({ owner, client: id }: Waiter): void {
    const client = this.#clients.get(id);
    if (!this.#waiters.delete(owner) || !client) return;
    client.waiting -= 1;
    if (client.waiting === 0) this.#clients.delete(id);
  }

  client(id: string): WaitingClient | undefined {
    return this.#clients.get(id);
  }

  silent(nowUs: number): WaitingClient | undefined {
    for (const client of this.#clients.values()) if (client.goneUs <= nowUs) return client;
    return undefined;
  }

  /** The client is part of the document and has changed with it. */
  updateClient(): void {}

  dropClient({ id }: WaitingClient): void {
    for (const [owner, { client }] of this.#waiters) {
      if (client === id) this.#waiters.delete(owner);
    }
    this.#clients.delete(id);
  }

  mark(): Mark | undefined {
    return this.#mark;
  }

  putMark(mark: Mark): void {
    this.#mark = { ...mark, untilWallUs: mark.untilUs + this.#wallOffsetUs };
  }

  dropMark(nowUs: number): void {
    if (this.#mark && this.#mark.untilUs <= nowUs) this.#mark = undefined;
  }

  tombstone(owner: string, nowUs: number): Tombstone | undefined {
    const tombstone = this.#tombstones.get(owner);
    return tombstone && tombstone.untilUs > nowUs ? tombstone : undefined;
  }

  putTombstone(tombstone: Tombstone): void {
    this.#tombstones.set(tombstone.owner, tombstone);
  }

  dropTombstones(nowUs: number): void {
    for (const [owner, { untilUs }] of this.#tombstones) {
      if (untilUs <= nowUs) this.#tombstones.delete(owner);
    }
  }

  /**
   * Moves the state to another clock, by which it is `at`: what the clock of before timed is gone,
   * and only a mark stays, until its end by the wall clock.
   */
  startClock(at: Instant): void {
    for (const part of [this.#holders, this.#waiters, this.#clients, this.#tombstones])
      part.clear();
    if (!this.#mark) return;
    const { untilWallUs } = this.#mark;
    const untilUs = at.us + untilWallUs - at.wallUs;
    this.#mark = untilWallUs > at.wallUs ? { ...this.#mark, untilUs } : undefined;
  }
}

function add<T>(entries: Map<string, T>, id: string, entry: T): void {
  if (entries.has(id)) throw new Unreadable("each id once");
  entries.set(id, entry);
}

// Each entry is a list: without the names of its fields, the text is a third shorter.

type Terms = Omit<Waiter, "offerUs" | "sinceUs">;

function termsEntry({ owner, client, mode, weight, limit, ttlUs, span, meta }: Terms): unknown[] {
  return [owner, client, mode, weight, limit, ttlUs, span, meta];
}

function readTerms(entry: readonly unknown[]): Terms {
  const [owner, client, mode, weight, limit, ttlUs, span, meta] = entry;
  return {
    owner: text(owner),
    client: text(client),
    mode: oneOf(MODES, mode),
    weight: whole(weight),
    limit: whole(limit),
    ttlUs: whole(ttlUs),
    span: whole(span),
    meta: text(meta),
  };
}

const TERMS = 8;

function holderEntry(holder: Holder): unknown[] {
  const { token, grantedUs, expiryUs, confirmed } = holder;
  return [...termsEntry(holder), token, grantedUs, expiryUs, confirmed];
}

function readHolder(entry: unknown): Holder {
  const [token, grantedUs, expiryUs, confirmed] = list(entry).slice(TERMS);
  return {
    ...readTerms(list(entry)),
    token: whole(token),
    grantedUs: whole(grantedUs),
    expiryUs: whole(expiryUs),
    confirmed: oneOf(FLAGS, confirmed),
  };
}

function waiterEntry(waiter: Waiter): unknown[] {
  return [...termsEntry(waiter), waiter.offerUs, waiter.sinceUs];
}

function readWaiter(entry: unknown): Waiter {
  const [offerUs, sinceUs] = list(entry).slice(TERMS);
  return { ...readTerms(list(entry)), offerUs: whole(offerUs), sinceUs: whole(sinceUs) };
}

function clientEntry({ id, heartbeatUs, goneUs, unresponsive }: Client): unknown[] {
  return [id, heartbeatUs, goneUs, unresponsive];
}

function readClient(entry: unknown): Client {
  const [id, heartbeatUs, goneUs, unresponsive] = list(entry);
  return {
    id: text(id),
    heartbeatUs: whole(heartbeatUs),
    goneUs: whole(goneUs),
    unresponsive: oneOf(FLAGS, unresponsive),
    waiting: 0,
  };
}

function tombstoneEntry({ owner, untilUs, reason }: Tombstone): unknown[] {
  return [owner, untilUs, reason];
}

function readTombstone(entry: unknown): Tombstone {
  const [owner, untilUs, reason] = list(entry);
  const isRevoked = reason !== null;
  return { owner: text(owner), untilUs: whole(untilUs), reason: isRevoked ? text(reason) : null };
}

function markEntry({ token, untilUs, meta, untilWallUs }: DatedMark): unknown[] {
  return [token, untilUs, meta, untilWallUs];
}

function readMark(entry: unknown): DatedMark {
  const [token, untilUs, meta, untilWallUs] = list(entry);
  return {
    token: whole(token),
    untilUs: whole(untilUs),
    meta: text(meta),
    untilWallUs: whole(untilWallUs),
  };
}
