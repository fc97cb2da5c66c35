/**
 * The link from a simulated process to the simulated ZooKeeper: the real store with its own client,
 * down to the bytes, over simulated sockets.
 */
import type { Store } from "../../src/contract/store.js";
import { SessionStore } from "../../src/families/session/session-store.js";
import type { Address } from "../../src/stores/store-url.js";
import { Ensemble } from "../../src/stores/zookeeper/client.js";
import { OPEN_ACL } from "../../src/stores/zookeeper/wire/requests.js";
import { ZookeeperSequencer } from "../../src/stores/zookeeper/zookeeper-store.js";
import type { Network } from "../connection.js";
import type { Link } from "../link.js";
import type { SimulatedProcess } from "../process.js";
import { notingEnds } from "../sequencer/told-ends.js";
import { SimulatedSocket } from "./simulated-socket.js";
import type { ZookeeperServer } from "./zookeeper-server.js";
import type { ServerClient, ZookeeperServers } from "./zookeeper-servers.js";

const DIGITS = 32;

export class ZookeeperLink implements Link, ServerClient {
  readonly isLocal = false;
  readonly #process: SimulatedProcess;
  readonly #servers: ZookeeperServers;
  readonly #network: Network;
  readonly #sockets = new Set<SimulatedSocket>();
  #cutUntilMs = 0;

  constructor(process: SimulatedProcess, servers: ZookeeperServers, network: Network) {
    this.#process = process;
    this.#servers = servers;
    this.#network = network;
    servers.add(this);
  }

  get callsUnderWay(): number {
    return [...this.#sockets].reduce((sum, { unanswered }) => sum + unanswered, 0);
  }

  openStore(): Store {
    const { runtime } = this.#process;
    const { chance } = this.#network;
    const digit = (): string => chance.whole(0, 15).toString(16);
    const id = (): string => Array.from({ length: DIGITS }, digit).join("");
    const settings = {
      tls: null,
      chroot: "",
      credentials: [],
      openSocket: (address: Address, _: unknown, onReady: () => void) =>
        this.#open(address, onReady),
    };
    const withIds = { ...runtime, random: { ...runtime.random, id } };
    const ensemble = new Ensemble(this.#servers.addresses, settings, withIds);
    const sequencer = new ZookeeperSequencer(ensemble, {
      chroot: "",
      namespace: "",
      shape: "mutex",
      isDirect: chance.isLucky(0.3),
      acl: OPEN_ACL,
      servers: "the simulation",
    });
    return new SessionStore(notingEnds(sequencer, this.#process));
  }

  abandon(noticedMs: number | null): void {
    for (const socket of this.#sockets) socket.abandon(noticedMs);
  }

  uses(server: ZookeeperServer): boolean {
    return [...this.#sockets].some((socket) => socket.server === server);
  }

  cut(forMs: number): void {
    this.#cutUntilMs = this.#network.world.nowMs + forMs;
  }

  reset(): void {
    for (const socket of [...this.#sockets]) socket.break();
  }

  resetNext(): void {
    for (const socket of this.#sockets) socket.breakNext();
  }

  #open(address: Address, onReady: () => void): SimulatedSocket {
    const socket: SimulatedSocket = new SimulatedSocket(
      {
        process: this.#process,
        network: this.#network,
        server: this.#servers.at(address),
        address,
        cutUntilMs: () => this.#cutUntilMs,
        onClosed: (closed) => this.#sockets.delete(closed),
      },
      onReady,
    );
    this.#sockets.add(socket);
    return socket;
  }
}
