/**
 * Wakes waiters in other processes: a unix socket per client in a folder next to the lock file (a
 * named pipe on Windows). It carries grants that are in the file already, so a message that is
 * lost, late or repeated does no harm: every waiter also polls.
 *
 * A client counts as gone when the system refuses a connection to its socket, because no process
 * listens there. The connection to a stopped process is accepted by the system; a client whose
 * socket file was deleted is passed over until it polls. What was granted to a refused client goes
 * to the next waiter at once, so a dead waiter costs one message instead of an offer window.
 */
import { closeSync, existsSync, lstatSync, openSync, readdirSync, unlinkSync } from "node:fs";
import type { Server, Socket } from "node:net";
import { dirname, join } from "node:path";
import { guarded, oneOf, record, text, whole } from "../../events/foreign-data.js";
import type { Push } from "../../rules/ledger-command.js";
import { prepareFolder } from "./lock-folder.js";
import { machineRuntime } from "./machine-runtime.js";

type OnPush = (push: Push) => void;
/** Called when the receiver of a push is certainly gone, and may not have seen it. */
type OnDead = () => void;

interface Peer {
  readonly socket: Socket;
  /** For the last pushes, which the peer may not have read if it dies. */
  readonly recent: OnDead[];
}

interface Listener {
  readonly onPush: OnPush;
  /** Absent until it may be needed. */
  server: Server | undefined;
}

/** A longer text without an end of its line is not one of our messages. */
const MAX_LINE = 65_536;
const RECENT = 8;
const MAX_PEERS = 256;
const IDLE_MS = 30_000;
/**
 * A receiver that reads nothing for this long is stopped. Not shorter: a busy machine may not run
 * this process for a tenth of it, and a message that is lost for that costs seconds.
 */
const FLUSH_MS = 1_000;

export class WakeupSockets {
  readonly #folder: SocketFolder;
  readonly #listeners = new Map<string, Listener>();
  readonly #peers = new Map<string, Peer>();
  #isOpen = false;
  readonly #onExit = (): void => {
    for (const client of this.#listeners.keys()) this.#folder.remove(client);
  };

  constructor(lockPath: string) {
    this.#folder = new SocketFolder(lockPath);
  }

  /** Pushes of this process arrive from now on; those of others after `open`. */
  listen(client: string, onPush: OnPush): void {
    this.#listeners.set(client, { onPush, server: undefined });
  }

  /** Makes the socket of a client before it returns; false if it exists, or the client does not. */
  open(client: string): boolean {
    const listener = this.#listeners.get(client);
    if (!listener || listener.server) return false;
    if (!this.#isOpen) {
      this.#isOpen = true;
      this.#folder.prepare();
      process.on("exit", this.#onExit);
      this.#folder.sweep();
    }
    listener.server = this.#serve(client);
    return true;
  }

  /** Makes missing sockets again, after the folder may have been removed. */
  repair(): void {
    if (!this.#isOpen) return;
    this.#folder.prepare();
    for (const [client, listener] of this.#listeners) {
      if (listener.server && !this.#folder.mayHave(client)) {
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

  /** False if a push would certainly not arrive. */
  reaches(client: string): boolean {
    if (this.#listeners.has(client) || this.#peers.has(client)) return true;
    return this.#folder.mayHave(client);
  }

  /**
   * Sends before it returns if a connection is open already. True for a client of this process.
   */
  send(push: Push, onDead: OnDead): boolean {
    const { client } = push;
    const listener = this.#listeners.get(client);
    if (listener) {
      machineRuntime.timers.soon(() => listener.onPush(push));
      return true;
    }
    const peer = this.#peers.get(client) ?? this.#connect(client);
    if (peer.recent.push(onDead) > RECENT) peer.recent.shift();
    peer.socket.write(`${JSON.stringify(push)}\n`);
    return false;
  }

  /** Flushes the pushes that were sent: without them the next holder would poll seconds later. */
  async close(): Promise<void> {
    for (const client of [...this.#listeners.keys()]) this.unlisten(client);
    const sockets = [...this.#peers.values()].map(({ socket }) => socket);
    this.#peers.clear();
    await Promise.all(sockets.map(flushed));
    this.#folder.close();
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
    // Without its socket a client is slower, not wrong: it polls.
    server.on("error", () => {});
    server.listen({ path: this.#folder.of(client), exclusive: true });
    server.unref();
    return server;
  }

  #connect(client: string): Peer {
    if (this.#peers.size >= MAX_PEERS) {
      const [oldest] = this.#peers.keys();
      if (oldest !== undefined) this.#drop(oldest);
    }
    const socket = net().connect(this.#folder.of(client));
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
      else this.#folder.ifRefused(client, () => this.#onRefused(client, peer.recent));
    });
    return peer;
  }

  #drop(client: string): void {
    const peer = this.#peers.get(client);
    this.#peers.delete(client);
    peer?.socket.destroy();
  }

  #onRefused(client: string, recent: readonly OnDead[]): void {
    this.#folder.remove(client);
    for (const onDead of recent) onDead();
  }
}

/** Ends a connection after everything written to it was sent. */
function flushed(socket: Socket): Promise<void> {
  return new Promise((resume) => {
    socket.once("close", () => resume());
    socket.setTimeout(FLUSH_MS, () => socket.destroy());
    socket.ref();
    socket.destroySoon();
  });
}

/** Cuts a stream of text into its lines. */
class LineReader {
  readonly #onLine: (line: string) => void;
  #rest = "";

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  read(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    if (this.#rest.length > MAX_LINE) this.#rest = "";
    for (const line of lines) this.#onLine(line);
  }
}

/** Reads a push from a line of a socket, which any program of this user may have written. */
function readPush(line: string): Push {
  const push = record(JSON.parse(line));
  const about = { client: text(push.client), key: text(push.key) };
  const type = oneOf(["granted", "marked", "revoked"], push.type);
  if (type === "granted") {
    const { owner, token, span, grantedUs, expiryUs } = record(push.grant);
    const grant = {
      owner: text(owner),
      token: whole(token),
      span: whole(span),
      grantedUs: whole(grantedUs),
      expiryUs: whole(expiryUs),
    };
    return { ...about, type, grant };
  }
  const ended = { ...about, owner: text(push.owner), token: whole(push.token) };
  if (type === "marked") return { ...ended, type, meta: text(push.meta) };
  return { ...ended, type, reason: text(push.reason) };
}

/** Loaded on first use: most programs never wait for another. */
const net = (): typeof import("node:net") => process.getBuiltinModule("node:net");

/** On some systems the path of a unix socket has at most 104 bytes, with one for its end. */
const MAX_PATH_BYTES = 103;
/** How many sockets of other clients are checked when a process begins to listen. */
const SWEPT = 16;

/** The sockets of the clients of one lock file. */
class SocketFolder {
  readonly folder: string;
  /** Whether sockets are files that can be looked for. */
  readonly isVisible: boolean = process.platform !== "win32";
  readonly #lockPath: string;
  #pipePrefix: string | undefined;
  #folderDescriptor: number | undefined;

  constructor(lockPath: string) {
    this.folder = `${lockPath}-wake`;
    this.#lockPath = lockPath;
  }

  prepare(): void {
    prepareFolder(dirname(this.folder));
    if (this.isVisible) prepareFolder(this.folder);
  }

  of(client: string): string {
    if (!this.isVisible) return this.#pipe() + client;
    const path = join(this.folder, client);
    if (Buffer.byteLength(path) <= MAX_PATH_BYTES || process.platform !== "linux") return path;
    // The folder under a name that is always short enough.
    this.#folderDescriptor ??= openSync(this.folder, "r");
    return `/proc/self/fd/${this.#folderDescriptor}/${client}`;
  }

  /** Pipes have no folders: those of one lock file begin alike. */
  #pipe(): string {
    if (this.#pipePrefix === undefined) {
      const { createHash } = process.getBuiltinModule("node:crypto");
      const digest = createHash("sha256").update(this.#lockPath.toLowerCase()).digest("hex");
      this.#pipePrefix = `\\\\.\\pipe\\holdfast-${digest.slice(0, 16)}-`;
    }
    return this.#pipePrefix;
  }

  /** False if the client certainly has no socket. */
  mayHave(client: string): boolean {
    return !this.isVisible || existsSync(this.of(client));
  }

  /** Calls back if the system refuses a connection, because no process listens there. */
  ifRefused(client: string, onRefused: () => void): void {
    const socket = net().connect(this.of(client));
    socket.unref();
    socket.on("connect", () => socket.destroy());
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ECONNREFUSED") onRefused();
    });
  }

  /** Removes sockets of killed processes: a few at a time, so that it costs little. */
  sweep(): void {
    if (!this.isVisible) return;
    const found = readdirSync(this.folder);
    const spare = Math.max(0, found.length - SWEPT);
    const start = Math.floor(machineRuntime.random.fraction() * (spare + 1));
    for (const client of found.slice(start, start + SWEPT)) {
      this.ifRefused(client, () => this.remove(client));
    }
  }

  /** Leaves other files alone: connections to a file that is not a socket are refused as well. */
  remove(client: string): void {
    if (!this.isVisible) return;
    const path = this.of(client);
    try {
      if (lstatSync(path).isSocket()) unlinkSync(path);
    } catch {
      // Another process was faster.
    }
  }

  close(): void {
    if (this.#folderDescriptor !== undefined) closeSync(this.#folderDescriptor);
    this.#folderDescriptor = undefined;
  }
}
