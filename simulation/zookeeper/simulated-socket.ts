/**
 * A socket between a simulated process and a simulated server. As with TCP, bytes arrive in their
 * order or not at all: a lost packet makes all that follow late, and a connection may fall silent
 * in one direction. After a break, bytes that are under way may still arrive, much later.
 */
import type { ServerSocket } from "../../src/stores/zookeeper/wire/connection.js";
import type { Network } from "../connection.js";
import type { SimulatedProcess } from "../process.js";
import { delayOf } from "../weather.js";
import type { Inhabitant } from "../world.js";

/** The other end of a socket, in the server. */
export interface ServerEnd {
  receive(bytes: Buffer): void;
  /** The client has closed the connection, or it broke. */
  closed(): void;
}

/** A server, as far as the network can tell. */
export interface Listening {
  readonly isDown: boolean;
  readonly busyUntilMs: number;
  accept(socket: SimulatedSocket): ServerEnd;
}

export interface Route {
  readonly process: SimulatedProcess;
  readonly network: Network;
  readonly server: Listening;
  readonly address: { readonly host: string; readonly port: number };
  /** World time before which no message gets through. */
  cutUntilMs(): number;
  onClosed(socket: SimulatedSocket): void;
}

/** One direction. */
interface Lane {
  readonly inhabitant: Inhabitant | null;
  lastMs: number;
  heldUntilMs: number;
  isSilent: boolean;
}

const RESENT_MS = [200, 400] as const;
const SIZE_BYTES = 4;

export class SimulatedSocket implements ServerSocket {
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly #route: Route;
  readonly #up: Lane;
  readonly #down: Lane;
  readonly #onData: ((chunk: Buffer) => void)[] = [];
  readonly #onError: ((error: NodeJS.ErrnoException) => void)[] = [];
  readonly #onClose: (() => void)[] = [];
  #end: ServerEnd | null = null;
  #isOpen = true;
  #breaksNext = false;
  /** Requests without a reply, and 1 while the connection is being made. */
  #unanswered = 1;

  constructor(route: Route, onReady: () => void) {
    this.#route = route;
    this.remoteAddress = route.address.host;
    this.remotePort = route.address.port;
    this.#up = { inhabitant: null, lastMs: 0, heldUntilMs: 0, isSilent: false };
    this.#down = { ...this.#up, inhabitant: route.process };
    this.#carry(this.#up, () => this.#knock(onReady));
  }

  get server(): Listening {
    return this.#route.server;
  }

  get unanswered(): number {
    return this.#isOpen ? this.#unanswered : 0;
  }

  on(event: "data" | "error" | "close", listener: (what: never) => void): void {
    if (event === "data") this.#onData.push(listener as (chunk: Buffer) => void);
    else if (event === "error") this.#onError.push(listener as (error: Error) => void);
    else this.#onClose.push(listener as () => void);
  }

  write(bytes: Buffer): void {
    if (!this.#isOpen) return;
    this.#unanswered += framesIn(bytes);
    this.#carry(this.#up, () => this.#end?.receive(bytes));
    if (!this.#breaksNext) return;
    const { world, chance } = this.#route.network;
    world.schedule(chance.between(world.nowMs, this.#up.lastMs), null, () => this.break());
  }

  /** By the client. */
  destroy(): void {
    if (!this.#isOpen) return;
    this.#close();
    this.#hangUp();
  }

  /** By the server. `answers`: how many requests this answers. */
  send(bytes: Buffer, answers: number): void {
    this.#carry(this.#down, () => {
      if (!this.#isOpen) return;
      this.#unanswered -= answers;
      for (const listener of this.#onData) listener(bytes);
    });
  }

  /** By the server, behind all that it has sent. */
  close(): void {
    this.#end = null;
    this.#carry(this.#down, () => this.#lose());
  }

  /** The connection breaks. */
  break(): void {
    const { network, process } = this.#route;
    const { world, chance, weather } = network;
    const fate = chance.weigh({ lost: 4, intime: 2, late: 4 });
    if (fate === "lost") this.#up.isSilent = true;
    if (fate === "late") this.#up.heldUntilMs = world.nowMs + chance.spread(...weather().lateMs);
    const end = this.#end;
    if (fate === "lost") world.schedule(world.nowMs, null, () => end?.closed());
    else this.#hangUp();
    world.schedule(world.nowMs + delayOf(weather(), chance), process, () => this.#lose());
  }

  breakNext(): void {
    this.#breaksNext = true;
  }

  /** The process is gone: its server learns of it after a while, or never (null). */
  abandon(noticedMs: number | null): void {
    const { world } = this.#route.network;
    const end = this.#end;
    if (noticedMs !== null) world.schedule(world.nowMs + noticedMs, null, () => end?.closed());
  }

  #knock(onReady: () => void): void {
    const { server } = this.#route;
    if (!this.#isOpen) return;
    if (server.isDown) {
      this.#carry(this.#down, () => this.#lose(new Error("connect ECONNREFUSED")));
      return;
    }
    this.#end = server.accept(this);
    this.#carry(this.#down, () => {
      this.#unanswered -= 1;
      if (this.#isOpen) onReady();
    });
  }

  #hangUp(): void {
    this.#carry(this.#up, () => this.#end?.closed());
  }

  #lose(error?: Error): void {
    if (!this.#isOpen) return;
    this.#close();
    if (error) for (const listener of this.#onError) listener(error);
    for (const listener of this.#onClose) listener();
  }

  #close(): void {
    this.#isOpen = false;
    this.#route.onClosed(this);
  }

  #carry(lane: Lane, task: () => void): void {
    const { network, process } = this.#route;
    const { chance, weather } = network;
    if (lane.isSilent) return;
    let delayMs = delayOf(weather(), chance);
    if (chance.isLucky(weather().loss)) {
      lane.isSilent = chance.isLucky(0.3);
      if (lane.isSilent) return;
      delayMs += chance.between(...RESENT_MS);
    }
    const fromMs = lane.inhabitant ? network.world.nowMs : process.nowMs;
    lane.lastMs = Math.max(lane.lastMs, fromMs + delayMs);
    this.#arriveAt(lane.lastMs, lane, task);
  }

  #arriveAt(atMs: number, lane: Lane, task: () => void): void {
    const { network, server, cutUntilMs } = this.#route;
    const { world } = network;
    world.schedule(atMs, lane.inhabitant, () => {
      const busyMs = lane.inhabitant ? 0 : server.busyUntilMs;
      const laterMs = Math.max(cutUntilMs(), lane.heldUntilMs, busyMs);
      if (lane.isSilent) return;
      if (laterMs > world.nowMs) this.#arriveAt(laterMs, lane, task);
      else task();
    });
  }
}

/** A four-letter word is no frame, but counts as one: the end of the connection answers it. */
function framesIn(bytes: Buffer): number {
  let count = 0;
  for (let at = 0; at < bytes.length; count += 1) at += SIZE_BYTES + bytes.readInt32BE(at);
  return count;
}
