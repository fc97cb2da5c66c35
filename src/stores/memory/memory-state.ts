import { joined, type Occupancy, VACANT } from "../../rules/fits.js";
import type {
  Holder,
  LedgerState,
  Mark,
  Tombstone,
  Waiter,
  WaitingClient,
} from "../../rules/ledger-state.js";
import { MemoryQueue } from "./memory-queue.js";
import { SharedHolders } from "./shared-holders.js";
import { Tombstones } from "./tombstones.js";

/** The last token of a namespace, shared by the states of all its names. */
export interface TokenCounter {
  last: number;
}

/**
 * The state of one name in memory. Each part is made when it is first needed: most names only ever
 * have one exclusive holder, and that costs one object.
 */
export class MemoryState implements LedgerState {
  readonly key: string;
  readonly #tokens: TokenCounter;
  #exclusive: Holder | undefined;
  #shared: SharedHolders | undefined;
  #queue: MemoryQueue | undefined;
  #mark: Mark | undefined;
  #tombstones: Tombstones | undefined;

  constructor(key: string, tokens: TokenCounter) {
    this.key = key;
    this.#tokens = tokens;
  }

  /** Whether nothing is left to remember. */
  get isEmpty(): boolean {
    return (
      !this.#exclusive &&
      !this.#shared?.occupancy.count &&
      !this.#queue?.size &&
      !this.#mark &&
      !this.#tombstones?.size
    );
  }

  lastToken(): number {
    return this.#tokens.last;
  }

  setLastToken(token: number): void {
    this.#tokens.last = token;
  }

  occupancy(): Occupancy {
    if (this.#exclusive) return joined(VACANT, this.#exclusive);
    return this.#shared?.occupancy ?? VACANT;
  }

  holder(owner: string): Holder | undefined {
    return this.#exclusive?.owner === owner ? this.#exclusive : this.#shared?.get(owner);
  }

  *holders(): Iterable<Holder> {
    if (this.#exclusive) yield this.#exclusive;
    if (this.#shared) yield* this.#shared.all();
  }

  holderWith(token: number): Holder | undefined {
    const exclusive = this.#exclusive;
    if (!exclusive) return this.#shared?.with(token);
    return token >= exclusive.token && token < exclusive.token + exclusive.span
      ? exclusive
      : undefined;
  }

  offers(client: string, most: number): readonly Holder[] {
    const exclusive = this.#exclusive;
    if (!exclusive) return this.#shared?.offers(client, most) ?? [];
    return exclusive.client === client && !exclusive.confirmed ? [exclusive] : [];
  }

  nextToExpire(): Holder | undefined {
    return this.#exclusive ?? this.#shared?.nextToExpire();
  }

  expired(nowUs: number): Holder | undefined {
    const next = this.nextToExpire();
    return next && next.expiryUs <= nowUs ? next : undefined;
  }

  putHolder(holder: Holder): void {
    if (holder.mode === "exclusive") this.#exclusive = holder;
    else {
      this.#shared ??= new SharedHolders();
      this.#shared.add(holder);
    }
  }

  updateHolder(holder: Holder): void {
    this.#shared?.update(holder);
  }

  dropHolder(holder: Holder): void {
    if (this.#exclusive === holder) this.#exclusive = undefined;
    else this.#shared?.remove(holder);
  }

  waiting(): number {
    return this.#queue?.size ?? 0;
  }

  waiter(owner: string): Waiter | undefined {
    return this.#queue?.get(owner);
  }

  waiters(): Iterable<Waiter> {
    return this.#queue?.all() ?? [];
  }

  head(): Waiter | undefined {
    return this.#queue?.head();
  }

  enqueue(waiter: Waiter, liveness: { heartbeatUs: number; goneUs: number }): void {
    this.#queue ??= new MemoryQueue();
    this.#queue.add(waiter, liveness);
  }

  dropWaiter(waiter: Waiter): void {
    this.#queue?.remove(waiter);
  }

  client(id: string): WaitingClient | undefined {
    return this.#queue?.client(id);
  }

  silent(nowUs: number): WaitingClient | undefined {
    return this.#queue?.silent(nowUs);
  }

  updateClient(client: WaitingClient): void {
    this.#queue?.update(client);
  }

  dropClient(client: WaitingClient): void {
    this.#queue?.drop(client);
  }

  mark(): Mark | undefined {
    return this.#mark;
  }

  putMark(mark: Mark): void {
    this.#mark = mark;
  }

  dropMark(nowUs: number): void {
    if (this.#mark && this.#mark.untilUs <= nowUs) this.#mark = undefined;
  }

  tombstone(owner: string, nowUs: number): Tombstone | undefined {
    return this.#tombstones?.get(owner, nowUs);
  }

  putTombstone(tombstone: Tombstone): void {
    this.#tombstones ??= new Tombstones();
    this.#tombstones.put(tombstone);
  }

  dropTombstones(nowUs: number): void {
    this.#tombstones?.drop(nowUs);
  }
}
