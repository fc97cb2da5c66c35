import type { Waiter, WaitingClient } from "../../rules/ledger-state.js";
import { type KeptClient, MOST_INLINE, type NameRecord } from "./name-record.js";

/** The queue of one name. */
export interface Waiters {
  readonly isFull: boolean;
  readonly size: number;
  head(): Waiter | undefined;
  get(owner: string): Waiter | undefined;
  /** In the order of the queue. */
  all(): Waiter[];
  add(waiter: Waiter, liveness: { touchUs: number; goneUs: number }): void;
  remove(waiter: Waiter): void;
  client(id: string): WaitingClient | undefined;
  silent(nowUs: number): WaitingClient | undefined;
  update(client: WaitingClient): void;
  drop(client: WaitingClient): void;
}

/** A few waiters, within the record of their name. */
export class WaiterList implements Waiters {
  readonly #record: NameRecord;

  constructor(record: NameRecord) {
    this.#record = record;
  }

  get isFull(): boolean {
    return this.size >= MOST_INLINE;
  }

  get size(): number {
    return this.#record.waiters?.length ?? 0;
  }

  head(): Waiter | undefined {
    return this.all().find(({ client }) => !this.#kept(client)?.suspect);
  }

  get(owner: string): Waiter | undefined {
    return this.all().find((waiter) => waiter.owner === owner);
  }

  all(): Waiter[] {
    return this.#record.waiters ?? [];
  }

  add(waiter: Waiter, { touchUs, goneUs }: { touchUs: number; goneUs: number }): void {
    this.#record.waiters = [...this.all(), waiter];
    const kept = this.#kept(waiter.client);
    if (kept) {
      kept.touchUs = Math.max(kept.touchUs, touchUs);
      kept.goneUs = Math.max(kept.goneUs, goneUs);
      return;
    }
    const client: KeptClient = { id: waiter.client, touchUs, goneUs, suspect: false };
    this.#record.clients = [...this.#clients, client];
  }

  remove({ owner, client }: Waiter): void {
    this.#keep((waiter) => waiter.owner !== owner);
    if (!this.all().some((waiter) => waiter.client === client)) this.#forget(client);
  }

  client(id: string): WaitingClient | undefined {
    return this.#view(this.#kept(id));
  }

  silent(nowUs: number): WaitingClient | undefined {
    return this.#view(this.#clients.find(({ goneUs }) => goneUs <= nowUs));
  }

  update({ id, goneUs, suspect }: WaitingClient): void {
    const kept = this.#kept(id);
    if (kept) Object.assign(kept, { goneUs, suspect });
  }

  drop({ id }: WaitingClient): void {
    this.#keep((waiter) => waiter.client !== id);
    this.#forget(id);
  }

  get #clients(): KeptClient[] {
    return this.#record.clients ?? [];
  }

  #kept(id: string): KeptClient | undefined {
    return this.#clients.find((client) => client.id === id);
  }

  #view(kept: KeptClient | undefined): WaitingClient | undefined {
    if (!kept) return undefined;
    const waiting = this.all().filter(({ client }) => client === kept.id).length;
    return { ...kept, waiting };
  }

  #keep(stays: (waiter: Waiter) => boolean): void {
    const rest = this.all().filter(stays);
    this.#record.waiters = rest.length > 0 ? rest : undefined;
  }

  #forget(id: string): void {
    const rest = this.#clients.filter((client) => client.id !== id);
    this.#record.clients = rest.length > 0 ? rest : undefined;
  }
}
