/**
 * The link from a simulated process to the simulated etcd: the real store over a client whose calls
 * are late, lost, sent again or overtaken, and whose streams break. Each sending of a request is
 * counted, as with the real client; an earlier sending may still arrive.
 */
import type { Store } from "../../src/contract/store.js";
import { SessionStore } from "../../src/families/session/session-store.js";
import type { Sending } from "../../src/stores/etcd/calls.js";
import type { EtcdClient, EtcdStream } from "../../src/stores/etcd/client.js";
import { EtcdSequencer } from "../../src/stores/etcd/etcd-store.js";
import type { StreamListener } from "../../src/stores/etcd/wire/grpc.js";
import {
  DELETE,
  type DeleteRequest,
  GRANT,
  type GrantRequest,
  KEEP_ALIVE,
  type LeaseRequest,
  type Method,
  RANGE,
  type RangeRequest,
  REVOKE,
  TIME_TO_LIVE,
  TXN,
  type TxnRequest,
  type WatchReply,
  type WatchRequest,
} from "../../src/stores/etcd/wire/messages.js";
import type { Runtime } from "../../src/time/runtime.js";
import { Connection, type Network } from "../connection.js";
import type { Link } from "../link.js";
import type { SimulatedProcess } from "../process.js";
import { delayOf } from "../weather.js";
import type { EtcdServer } from "./etcd-server.js";
import { SimulatedStream } from "./simulated-stream.js";
import { notingEnds } from "./told-ends.js";

interface Call {
  readonly execute: () => unknown;
  readonly sending: Sending;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: Error) => void;
}

const BROKEN = "14 UNAVAILABLE: The connection broke.";
const CANCELLED = "The call was cancelled.";
const REFUSED = "14 UNAVAILABLE: The connection was refused.";

export class EtcdLink implements Link {
  readonly isLocal = false;
  readonly #process: SimulatedProcess;
  readonly #server: EtcdServer;
  readonly #network: Network;
  readonly #connection: Connection;
  readonly #calls = new Set<Call>();
  readonly #streams = new Set<SimulatedStream<WatchRequest, WatchReply>>();
  #opening = 0;

  constructor(process: SimulatedProcess, server: EtcdServer, network: Network) {
    this.#process = process;
    this.#server = server;
    this.#network = network;
    const onBreak = (): void => this.reset();
    this.#connection = new Connection(process, network, { server, onBreak, isMultiplexed: true });
    server.onRestart(onBreak);
  }

  get callsUnderWay(): number {
    return this.#calls.size + this.#opening;
  }

  openStore(): Store {
    const { runtime } = this.#process;
    const { chance } = this.#network;
    const digits = (): string =>
      chance
        .whole(0, 2 ** 28 - 1)
        .toString(16)
        .padStart(7, "0");
    const random = { ...runtime.random, id: () => `${digits()}${digits()}` };
    const withIds: Runtime = { ...runtime, random };
    const options = { namespace: "", hosts: "the simulated host" };
    return new SessionStore(
      notingEnds(new EtcdSequencer(this.#client(), options, withIds), this.#process),
    );
  }

  abandon(noticedMs: number | null): void {
    this.#connection.abandon();
    if (noticedMs === null) return;
    const { world } = this.#network;
    world.schedule(world.nowMs + noticedMs, null, () => {
      for (const stream of this.#streams) stream.close();
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
    return {
      call: <Request, Reply>(
        method: Method<Request, Reply>,
        request: Request,
        sending: Sending,
      ): Promise<Reply> =>
        new Promise((resolve, reject) => {
          const execute = (): unknown => this.#execute(method.path, request);
          const call = { execute, sending, resolve: resolve as Call["resolve"], reject };
          this.#calls.add(call);
          this.#send(call);
        }),
      openStream: <Request, Reply>(_: Method<Request, Reply>, listener: StreamListener<Reply>) =>
        this.#openWatch(listener as never) as Promise<EtcdStream<unknown>>,
      close: () => {},
    };
  }

  #execute(path: string, request: unknown): unknown {
    const server = this.#server;
    if (path === TXN.path) return server.txn(request as TxnRequest);
    if (path === RANGE.path) return server.range(request as RangeRequest);
    if (path === DELETE.path) return server.deleteRange(request as DeleteRequest);
    if (path === GRANT.path) return server.grantLease(request as GrantRequest);
    const { id } = request as LeaseRequest;
    if (path === REVOKE.path) return server.revokeLease(id);
    if (path === TIME_TO_LIVE.path) return server.timeToLive(id);
    if (path === KEEP_ALIVE.path) return server.keepAlive(id);
    throw new Error(`The simulation has no ${path}.`);
  }

  /** The call counts each sending, or refuses it when its time is over. */
  #send(call: Call): void {
    try {
      call.sending.start(() => ({ cancel: () => this.#fail(call, CANCELLED) }));
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

  async #openWatch(listener: StreamListener<WatchReply>): Promise<EtcdStream<WatchRequest>> {
    const { world, chance, weather } = this.#network;
    const { watches } = this.#server;
    const connection = this.#connection;
    this.#opening += 1;
    await this.#process.sleep(connection.delayMs());
    this.#opening -= 1;
    if (this.#server.isDown || connection.isCut) throw new Error(REFUSED);
    let lastMs = 0;
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
    const stream = new SimulatedStream<WatchRequest, WatchReply>((request) => {
      lastRequestMs = Math.max(lastRequestMs, this.#process.nowMs + connection.delayMs());
      world.schedule(Math.max(lastRequestMs, connection.cutUntilMs), null, () => {
        if (number === connection.number) watches.take(served, request);
      });
    }, listener);
    this.#streams.add(stream);
    stream.onClose(() => {
      this.#streams.delete(stream);
      watches.close(served);
    });
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
