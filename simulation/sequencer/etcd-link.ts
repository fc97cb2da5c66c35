/**
 * The link from a simulated process to the simulated etcd: the real store over a client whose calls
 * are late, lost, sent again or overtaken, and whose streams break. Each sending of a request is
 * counted, as with the real client; an earlier sending may still arrive.
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
import { Connection, type Network } from "../connection.js";
import type { Link } from "../link.js";
import type { SimulatedProcess } from "../process.js";
import { delayOf } from "../weather.js";
import type { EtcdServer } from "./etcd-server.js";
import { SimulatedStream } from "./simulated-stream.js";
import { notingEnds } from "./told-ends.js";

interface Call {
  readonly execute: () => unknown;
  readonly options: CallOptions;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: Error) => void;
}

const BROKEN = "14 UNAVAILABLE: The connection broke.";
const REFUSED = "14 UNAVAILABLE: The connection was refused.";

export class EtcdLink implements Link {
  readonly isLocal = false;
  readonly #process: SimulatedProcess;
  readonly #server: EtcdServer;
  readonly #network: Network;
  readonly #connection: Connection;
  readonly #calls = new Set<Call>();
  readonly #streams = new Set<Pick<SimulatedStream<never, never>, "hangUp" | "break">>();
  #opening = 0;
  #keepAlives = 0;

  constructor(process: SimulatedProcess, server: EtcdServer, network: Network) {
    this.#process = process;
    this.#server = server;
    this.#network = network;
    const onBreak = (): void => this.reset();
    this.#connection = new Connection(process, network, { server, onBreak, isMultiplexed: true });
    server.onRestart(onBreak);
  }

  get callsUnderWay(): number {
    return this.#calls.size + this.#keepAlives + this.#opening;
  }

  openStore(): Store {
    const { port } = this.#process;
    const { chance } = this.#network;
    const digits = (): string =>
      chance
        .whole(0, 2 ** 28 - 1)
        .toString(16)
        .padStart(7, "0");
    const random = { ...port.random, id: () => `${digits()}${digits()}` };
    const withIds: Port = { ...port, random };
    const isIdle = (): boolean => chance.isLucky(0.5);
    const options = { namespace: "", hosts: "", closeClient: () => {}, isIdle };
    return new SequencerStore(
      notingEnds(new EtcdSequencer(this.#client(), options, withIds), this.#process),
    );
  }

  abandon(noticedMs: number | null): void {
    this.#connection.abandon();
    if (noticedMs === null) return;
    const { world } = this.#network;
    world.schedule(world.nowMs + noticedMs, null, () => {
      for (const stream of this.#streams) stream.hangUp();
    });
  }

  cut(forMs: number): void {
    this.#connection.cut(forMs);
  }

  resetNext(): void {
    this.#connection.breakNext();
  }

  reset(): void {
    const { world } = this.#network;
    this.#connection.replace(
      this.#calls,
      (call) => this.#send(call),
      (call) => this.#fail(call, BROKEN),
    );
    for (const stream of [...this.#streams]) {
      const breakMs = world.nowMs + this.#connection.delayMs();
      world.schedule(breakMs, this.#process, () => stream.break(BROKEN));
    }
  }

  #client(): EtcdClient {
    const server = this.#server;
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

  /** The interceptor counts the sending, or refuses it when the time of the call is over. */
  #send(call: Call): void {
    const transport = {
      cancelWithStatus: (_: number, details: string) => this.#fail(call, details),
    };
    try {
      for (const intercept of call.options.interceptors ?? []) intercept({}, () => transport);
    } catch (error) {
      return this.#fail(call, (error as Error).message);
    }
    this.#connection.send({
      execute: () => {
        const reply = attempt(call.execute);
        return () => {
          if ("error" in reply) this.#fail(call, reply.error);
          else if (this.#calls.delete(call)) call.resolve(reply.value);
        };
      },
      onRefused: () => this.#fail(call, REFUSED),
    });
  }

  #fail(call: Call, message: string): void {
    if (this.#calls.delete(call)) call.reject(new Error(message));
  }

  async #openKeepAlive(): Promise<EtcdStream<{ readonly ID: string }, KeepAliveReply>> {
    this.#keepAlives += 1;
    const stream = await this.#open<{ readonly ID: string }, KeepAliveReply>(({ ID }) => {
      this.#connection.send({
        execute: () => {
          const reply = attempt(() => this.#server.keepAlive(ID));
          return () => ("error" in reply ? stream.break(reply.error) : stream.tell(reply.value));
        },
        onRefused: () => {
          if (stream.isOpen) stream.break(REFUSED);
        },
      });
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
    const { world, chance, weather } = this.#network;
    const { watches } = this.#server;
    let lastMs = 0;
    const connection = this.#connection;
    const { number } = connection;
    // Replies of one stream keep their order. A reply may be late, or lost with its member.
    const served = watches.open((reply) => {
      const { slowPush, loss } = weather();
      lastMs = Math.max(lastMs, world.nowMs + delayOf(weather(), chance, slowPush));
      if (chance.isLucky(loss / 3)) return;
      world.schedule(Math.max(lastMs, connection.cutUntilMs), this.#process, () => {
        if (number === connection.number) stream.tell(reply);
      });
    });
    let lastRequestMs = 0;
    const stream = await this.#open<WatchRequest, WatchReply>((request) => {
      lastRequestMs = Math.max(lastRequestMs, this.#process.nowMs + connection.delayMs());
      world.schedule(Math.max(lastRequestMs, connection.cutUntilMs), null, () => {
        if (number === connection.number) watches.take(served, request);
      });
    }).catch((error: unknown) => {
      watches.close(served);
      throw error;
    });
    stream.onClose(() => watches.close(served));
    return stream;
  }

  async #open<Request, Reply>(
    onWrite: (request: Request) => void,
  ): Promise<SimulatedStream<Request, Reply>> {
    this.#opening += 1;
    await this.#process.sleep(this.#connection.delayMs());
    this.#opening -= 1;
    if (this.#server.isDown || this.#connection.isCut) throw new Error(REFUSED);
    const stream = new SimulatedStream<Request, Reply>(onWrite);
    this.#streams.add(stream);
    stream.onClose(() => this.#streams.delete(stream));
    return stream;
  }
}

/** The return value of a call of the server, or its failure. */
function attempt<T>(call: () => T): { readonly value: T } | { readonly error: string } {
  try {
    return { value: call() };
  } catch (error) {
    return { error: (error as Error).message };
  }
}
