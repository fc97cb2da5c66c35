/**
 * The way from a simulated process to the simulated etcd: the real store over a client whose calls
 * are late, lost, sent again or overtaken, and whose streams break. A request that was sent again
 * is counted, as the real client lets the store count it; the first sending may still arrive.
 */
import type { Store } from "../../src/store.js";
import type {
  CallOptions,
  EtcdClient,
  EtcdStream,
  KeepAliveReply,
  WatchReply,
  WatchRequest,
} from "../../src/stores/etcd/etcd-client.js";
import { EtcdSequencer } from "../../src/stores/etcd/etcd-sequencer.js";
import { SequencerStore } from "../../src/stores/sequencer/sequencer-store.js";
import type { Port } from "../../src/time/port.js";
import type { Chance } from "../chance.js";
import type { Way } from "../link.js";
import type { SimulatedProcess } from "../process.js";
import { delayOf, type Weather } from "../weather.js";
import type { World } from "../world.js";
import type { EtcdServer } from "./etcd-server.js";
import { SimulatedStream } from "./simulated-stream.js";

export interface Surroundings {
  readonly world: World;
  readonly server: EtcdServer;
  readonly chance: Chance;
  weather(): Weather;
}

interface Call {
  readonly execute: () => unknown;
  readonly options: CallOptions;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: Error) => void;
}

const BROKEN = "14 UNAVAILABLE: The connection broke.";
const REFUSED = "14 UNAVAILABLE: The connection was refused.";

export class EtcdLink implements Way {
  readonly isLocal = false;
  readonly #process: SimulatedProcess;
  readonly #around: Surroundings;
  readonly #calls = new Set<Call>();
  readonly #streams = new Set<Pick<SimulatedStream<never, never>, "hangUp" | "break">>();
  #opening = 0;
  #keepAlives = 0;
  #connection = 0;
  #lastRequestMs = 0;
  #cutUntilMs = 0;
  #breaksNext = false;

  constructor(process: SimulatedProcess, around: Surroundings) {
    this.#process = process;
    this.#around = around;
    around.server.onRestart(() => this.reset());
  }

  get callsUnderWay(): number {
    return this.#calls.size + this.#keepAlives + this.#opening;
  }

  openStore(): Store {
    const { port } = this.#process;
    const { chance } = this.#around;
    const digits = (): string =>
      chance
        .whole(0, 2 ** 28 - 1)
        .toString(16)
        .padStart(7, "0");
    const random = { ...port.random, id: () => `${digits()}${digits()}` };
    const withIds: Port = { ...port, random };
    const isIdle = (): boolean => chance.isLucky(0.5);
    const options = { namespace: "", hosts: "", closeClient: () => {}, isIdle };
    return new SequencerStore(new EtcdSequencer(this.#client(), options, withIds));
  }

  abandon(noticedMs: number | null): void {
    this.#connection += 1;
    if (noticedMs === null) return;
    const { world } = this.#around;
    world.schedule(world.nowMs + noticedMs, null, () => {
      for (const stream of this.#streams) stream.hangUp();
    });
  }

  cut(forMs: number): void {
    this.#cutUntilMs = this.#around.world.nowMs + forMs;
  }

  resetNext(): void {
    this.#breaksNext = true;
  }

  reset(): void {
    const { world, chance } = this.#around;
    this.#connection += 1;
    this.#lastRequestMs = 0;
    const resends = chance.isLucky(0.5);
    for (const call of this.#calls) {
      world.schedule(world.nowMs + chance.between(0, 20), this.#process, () => {
        if (!this.#calls.has(call)) return;
        if (resends) this.#send(call);
        else this.#fail(call, BROKEN);
      });
    }
    for (const stream of [...this.#streams]) {
      world.schedule(world.nowMs + this.#delay(), this.#process, () => stream.break(BROKEN));
    }
  }

  #client(): EtcdClient {
    const { server } = this.#around;
    const call = <T>(execute: () => unknown, options: CallOptions = {}): Promise<T> =>
      this.#call(execute, options) as Promise<T>;
    return {
      kv: {
        txn: (request, options) => call(() => server.txn(request), options),
        range: (request, options) => call(() => server.range(request), options),
        deleteRange: ({ key }, options) => call(() => server.deleteRange(key.toString()), options),
      },
      leaseClient: {
        leaseGrant: ({ ID, TTL }, options) => call(() => server.grantLease(ID, TTL), options),
        leaseRevoke: ({ ID }, options) => call(() => server.revokeLease(ID), options),
        leaseTimeToLive: ({ ID }, options) => call(() => server.timeToLive(ID), options),
        leaseKeepAlive: () => this.#openKeepAlive(),
      },
      watchClient: { watch: () => this.#openWatch() },
    };
  }

  #call(execute: () => unknown, options: CallOptions): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const call = { execute, options, resolve, reject };
      this.#calls.add(call);
      this.#send(call);
    });
  }

  /** The interceptor counts the sending, and refuses it when nobody waits any more. */
  #send(call: Call): void {
    const transport = {
      cancelWithStatus: (_: number, details: string) => this.#fail(call, details),
    };
    try {
      for (const intercept of call.options.interceptors ?? []) intercept({}, () => transport);
    } catch (error) {
      return this.#fail(call, (error as Error).message);
    }
    this.#transmit(
      () => this.#calls.has(call),
      call.execute,
      (reply) => {
        if (this.#calls.delete(call)) call.resolve(reply);
      },
      (message) => this.#fail(call, message),
    );
  }

  #fail(call: Call, message: string): void {
    if (this.#calls.delete(call)) call.reject(new Error(message));
  }

  async #openKeepAlive(): Promise<EtcdStream<{ readonly ID: string }, KeepAliveReply>> {
    this.#keepAlives += 1;
    const { server } = this.#around;
    const stream = await this.#open<{ readonly ID: string }, KeepAliveReply>(({ ID }) => {
      this.#transmit(
        () => stream.isOpen,
        () => server.keepAlive(ID),
        (reply) => stream.tell(reply as KeepAliveReply),
        (message) => stream.break(message),
      );
    }).catch((error: unknown) => {
      this.#keepAlives -= 1;
      throw error;
    });
    stream.onClose(() => {
      this.#keepAlives -= 1;
    });
    return stream;
  }

  async #openWatch(): Promise<EtcdStream<WatchRequest, WatchReply>> {
    const { server, world, chance, weather } = this.#around;
    let lastMs = 0;
    const connection = this.#connection;
    // Replies of one stream keep their order; a push may be late, or lost with its member.
    const served = server.watches.open((reply) => {
      const { slowPush, loss } = weather();
      lastMs = Math.max(lastMs, world.nowMs + delayOf(weather(), chance, slowPush));
      if (chance.isLucky(loss / 3)) return;
      world.schedule(Math.max(lastMs, this.#cutUntilMs), this.#process, () => {
        if (connection === this.#connection) stream.tell(reply);
      });
    });
    let lastRequestMs = 0;
    const stream = await this.#open<WatchRequest, WatchReply>((request) => {
      lastRequestMs = Math.max(lastRequestMs, this.#process.nowMs + this.#delay());
      world.schedule(Math.max(lastRequestMs, this.#cutUntilMs), null, () => {
        if (connection === this.#connection) server.watches.take(served, request);
      });
    }).catch((error: unknown) => {
      server.watches.close(served);
      throw error;
    });
    stream.onClose(() => server.watches.close(served));
    return stream;
  }

  async #open<Request, Reply>(
    onWrite: (request: Request) => void,
  ): Promise<SimulatedStream<Request, Reply>> {
    this.#opening += 1;
    await this.#process.sleep(this.#delay());
    this.#opening -= 1;
    if (this.#around.server.isDown || this.#isCut) throw new Error(REFUSED);
    const stream = new SimulatedStream<Request, Reply>(onWrite);
    this.#streams.add(stream);
    stream.onClose(() => this.#streams.delete(stream));
    return stream;
  }

  #transmit(
    isWanted: () => boolean,
    execute: () => unknown,
    onReply: (reply: unknown) => void,
    onFailure: (message: string) => void,
  ): void {
    const { world, chance, weather } = this.#around;
    const fromMs = this.#process.nowMs;
    const connection = this.#connection;
    let arrivalMs = fromMs + this.#delay();
    if (weather().ordered) {
      arrivalMs = Math.max(arrivalMs, this.#lastRequestMs);
      this.#lastRequestMs = arrivalMs;
    }
    if (this.#breaksNext) {
      this.#breaksNext = false;
      world.schedule(chance.between(fromMs, arrivalMs), null, () => this.reset());
    }
    if (chance.isLucky(weather().loss) || this.#isCut) return;
    const arrive = (isLate: boolean): void => {
      const { server } = this.#around;
      const isStray = connection !== this.#connection;
      const later = (atMs: number): void => {
        world.schedule(atMs, null, () => arrive(true));
      };
      if (server.isDown || this.#isCut) {
        if (!isStray && server.isDown && chance.isLucky(0.7)) {
          this.#answer(connection, () => isWanted() && onFailure(REFUSED));
        }
        return;
      }
      if (server.busyUntilMs > world.nowMs) return later(server.busyUntilMs);
      if (isStray && !isLate) {
        const fate = chance.weigh({ lost: 4, intime: 2, late: 4 });
        if (fate === "lost") return;
        if (fate === "late") return later(world.nowMs + chance.spread(...weather().lateMs));
      }
      let settle: () => void;
      try {
        const reply = execute();
        settle = () => onReply(reply);
      } catch (error) {
        settle = () => onFailure((error as Error).message);
      }
      if (!chance.isLucky(weather().loss)) this.#answer(connection, settle);
    };
    world.schedule(arrivalMs, null, () => arrive(false));
  }

  #answer(connection: number, settle: () => void): void {
    const { world } = this.#around;
    world.schedule(world.nowMs + this.#delay(), this.#process, () => {
      if (connection === this.#connection) settle();
    });
  }

  get #isCut(): boolean {
    return this.#around.world.nowMs < this.#cutUntilMs;
  }

  #delay(): number {
    return delayOf(this.#around.weather(), this.#around.chance);
  }
}
