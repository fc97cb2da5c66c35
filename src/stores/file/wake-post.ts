/**
 * Wakes waiters in other processes: a unix socket per client in a folder beside the lock file (a
 * named pipe on Windows). It carries grants that are in the file already, so a message that is
 * lost, late or doubled does no harm: every waiter also asks by itself.
 *
 * When a client counts as gone: the system refuses a connection to a socket without a listener.
 * A stopped process still accepts (its system does), and one that only has no socket file any more
 * is passed over until it asks itself. So what was granted to a refused client goes to the next at
 * once, and a dead waiter costs one message instead of a offer window.
 */
import { existsSync, lstatSync, readdirSync, unlinkSync } from "node:fs";
import type { Server, Socket } from "node:net";
import { guarded } from "../../foreign-data.js";
import type { Push } from "../../rules/ledger-command.js";
import { LineReader } from "./line-reader.js";
import { machinePort } from "./machine-port.js";
import { readPush } from "./read-push.js";
import { WakePath } from "./wake-path.js";

type OnPush = (push: Push) => void;
/** Called when the receiver of a push is gone for certain, and may not have seen it. */
type OnDead = () => void;

interface Peer {
  readonly socket: Socket;
  /** Called for the last pushes if the peer dies with one of them unread. */
  readonly recent: OnDead[];
}

interface Listener {
  readonly onPush: OnPush;
  /** Absent until it may be needed. */
  server: Server | undefined;
}

/** Loaded when it is first needed: most programs never wait for another. */
const net = (): typeof import("node:net") => process.getBuiltinModule("node:net");

const RECENT = 8;
const MOST_PEERS = 256;
const IDLE_MS = 30_000;
/** So many strange sockets are looked at when a process begins to listen. */
const SWEPT = 16;

/**
 * A receiver that takes nothing for so long is stopped, with many messages unread. A busy machine
 * may well not run this process for a tenth of it, and a message lost for that costs seconds.
 */
const FLUSH_MS = 1_000;

export class WakePost {
  readonly #paths: WakePath;
  readonly #listeners = new Map<string, Listener>();
  readonly #peers = new Map<string, Peer>();
  #isOpen = false;
  readonly #onExit = (): void => {
    for (const client of this.#listeners.keys()) this.#remove(client);
  };

  constructor(lockPath: string) {
    this.#paths = new WakePath(lockPath);
  }

  /** Pushes of this process arrive from now on, those of others when `open` was called, too. */
  listen(client: string, onPush: OnPush): void {
    this.#listeners.set(client, { onPush, server: undefined });
  }

  /** Makes the socket of a client, before this returns; false when there is one, or no client. */
  open(client: string): boolean {
    const listener = this.#listeners.get(client);
    if (!listener || listener.server) return false;
    if (!this.#isOpen) {
      this.#isOpen = true;
      this.#paths.prepare();
      process.on("exit", this.#onExit);
      this.#sweep();
    }
    listener.server = this.#serve(client);
    return true;
  }

  /** After the folder may have been removed: sockets that are gone are made anew. */
  repair(): void {
    if (!this.#isOpen) return;
    this.#paths.prepare();
    for (const [client, listener] of this.#listeners) {
      if (listener.server && this.#paths.isVisible && !existsSync(this.#paths.of(client))) {
        listener.server.close();
        listener.server = this.#serve(client);
      }
    }
  }

  unlisten(client: string): void {
    const listener = this.#listeners.get(client);
    if (!listener) return;
    this.#listeners.delete(client);
    listener.server?.close();
    if (this.#listeners.size > 0) return;
    process.off("exit", this.#onExit);
    this.#isOpen = false;
  }

  /** False when it is certain that a push would not arrive. */
  reaches(client: string): boolean {
    if (this.#listeners.has(client) || this.#peers.has(client)) return true;
    return !this.#paths.isVisible || existsSync(this.#paths.of(client));
  }

  /**
   * Sends before it returns where a connection is open already. True for a client of this process.
   */
  send(push: Push, onDead: OnDead): boolean {
    const { client } = push;
    const listener = this.#listeners.get(client);
    if (listener) {
      machinePort.timers.soon(() => listener.onPush(push));
      return true;
    }
    const peer = this.#peers.get(client) ?? this.#connect(client);
    if (peer.recent.push(onDead) > RECENT) peer.recent.shift();
    peer.socket.write(`${JSON.stringify(push)}\n`);
    return false;
  }

  /**
   * Flushes the pushes that were sent: without them the next holder would find out by asking,
   * seconds later.
   */
  async close(): Promise<void> {
    for (const client of [...this.#listeners.keys()]) this.unlisten(client);
    const sockets = [...this.#peers.values()].map(({ socket }) => socket);
    this.#peers.clear();
    await Promise.all(sockets.map(flushed));
    this.#paths.close();
  }

  #serve(client: string): Server {
    const server = net().createServer((socket) => {
      socket.unref();
      socket.on("error", () => socket.destroy());
      const receive = guarded("file", "a message to this client", (line: string) => {
        const push = readPush(line);
        this.#listeners.get(push.client)?.onPush(push);
      });
      const lines = new LineReader(receive);
      socket.setEncoding("utf8").on("data", (text: string) => lines.read(text));
    });
    // Without its socket a client is slower, not wrong: it asks by itself.
    server.on("error", () => {});
    server.listen({ path: this.#paths.of(client), exclusive: true });
    server.unref();
    return server;
  }

  #connect(client: string): Peer {
    if (this.#peers.size >= MOST_PEERS) {
      const [oldest] = this.#peers.keys();
      if (oldest !== undefined) this.#drop(oldest);
    }
    const socket = net().connect(this.#paths.of(client));
    const peer: Peer = { socket, recent: [] };
    this.#peers.set(client, peer);
    socket.unref();
    socket.setTimeout(IDLE_MS, () => this.#drop(client));
    let isRefused = false;
    socket.on("error", (error: NodeJS.ErrnoException) => {
      isRefused = error.code === "ECONNREFUSED";
    });
    socket.on("close", () => {
      if (this.#peers.get(client) !== peer) return;
      this.#peers.delete(client);
      if (isRefused) this.#onRefused(client, peer.recent);
      else this.#probe(client, (refused) => refused && this.#onRefused(client, peer.recent));
    });
    return peer;
  }

  #drop(client: string): void {
    const peer = this.#peers.get(client);
    this.#peers.delete(client);
    peer?.socket.destroy();
  }

  #onRefused(client: string, recent: readonly OnDead[]): void {
    this.#remove(client);
    for (const onDead of recent) onDead();
  }

  /** Asks the system whether a process listens there. */
  #probe(client: string, tell: (isRefused: boolean) => void): void {
    const socket = net().connect(this.#paths.of(client));
    socket.unref();
    socket.on("connect", () => socket.destroy());
    socket.on("error", (error: NodeJS.ErrnoException) => tell(error.code === "ECONNREFUSED"));
  }

  /**
   * Removes sockets that killed processes left behind; a few at a time, so that it costs nothing.
   */
  #sweep(): void {
    if (!this.#paths.isVisible) return;
    const found = readdirSync(this.#paths.folder);
    const spare = Math.max(0, found.length - SWEPT);
    const start = Math.floor(machinePort.random.fraction() * (spare + 1));
    for (const client of found.slice(start, start + SWEPT)) {
      this.#probe(client, (isRefused) => isRefused && this.#remove(client));
    }
  }

  /** Connections to a file that is no socket are refused, too: such a file is not ours. */
  #remove(client: string): void {
    if (!this.#paths.isVisible) return;
    const path = this.#paths.of(client);
    try {
      if (lstatSync(path).isSocket()) unlinkSync(path);
    } catch {
      // Another process was faster.
    }
  }
}

/** Ends a connection when all that was written to it is on its way. */
function flushed(socket: Socket): Promise<void> {
  return new Promise((resume) => {
    socket.once("close", () => resume());
    socket.setTimeout(FLUSH_MS, () => socket.destroy());
    socket.ref();
    socket.destroySoon();
  });
}
