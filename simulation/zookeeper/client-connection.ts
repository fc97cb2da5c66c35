/**
 * A connection of a client, as its server sees it. Requests are done one after the other, so reads
 * see the writes before them.
 */
import type { ServerEnd, SimulatedSocket } from "./simulated-socket.js";
import { NO_NODE } from "./writes.js";
import { statOf, type Transaction, type Znode } from "./znode-tree.js";
import {
  type ClientRequest,
  errorReply,
  eventFrame,
  newSplitter,
  PING_XID,
  readRequest,
  readSessionRequest,
  reply,
  sessionReply,
  writeMulti,
  writeRefusedMulti,
  writeStat,
  writeWritten,
} from "./zookeeper-protocol.js";
import type { WriteResult, ZookeeperServer } from "./zookeeper-server.js";

type Read = Exclude<
  ClientRequest,
  { readonly type: "write" | "sync" | "setWatches" | "ping" | "closeSession" }
>;

export class ClientConnection implements ServerEnd {
  readonly #server: ZookeeperServer;
  readonly #socket: SimulatedSocket;
  readonly #splitter = newSplitter();
  readonly #watched = new Set<string>();
  #frames: Buffer[] = [];
  #isBusy = false;
  #isOpen = true;
  #isEnding = false;
  #session = 0n;

  constructor(server: ZookeeperServer, socket: SimulatedSocket) {
    this.#server = server;
    this.#socket = socket;
  }

  /** 0 until the session is open. */
  get session(): bigint {
    return this.#session;
  }

  receive(bytes: Buffer): void {
    if (!this.#isOpen) return;
    if (bytes.toString() === "srvr") {
      this.#socket.send(Buffer.from(`Mode: ${this.#server.mode}\n`), 0);
      return this.close();
    }
    this.#frames.push(...this.#splitter.push(bytes));
    this.#next();
  }

  closed(): void {
    this.#isOpen = false;
    this.#frames = [];
    this.#server.forget(this);
  }

  close(): void {
    if (!this.#isOpen) return;
    this.closed();
    this.#socket.close();
  }

  /** The session goes on, on another connection; threads of the server may still do what it has. */
  supersede(): void {
    const frames = this.#frames;
    this.close();
    this.#frames = frames;
  }

  /** The server has applied a transaction; `before`: the znodes that it changed. */
  onApplied({ changes, endedSession }: Transaction, before: ReadonlyMap<string, Znode>): void {
    for (const { path, znode } of changes) {
      if (!this.#watched.has(path)) continue;
      if (znode && znode.mzxid === before.get(path)?.mzxid) continue;
      this.#fire(znode ? "changed" : "deleted", path);
    }
    if (endedSession === this.#session && !this.#isEnding) this.close();
  }

  #next(): void {
    const frame = this.#isBusy ? undefined : this.#frames.shift();
    if (!frame) return;
    this.#isBusy = true;
    if (this.#session === 0n) this.#open(frame);
    else this.#handle(readRequest(frame));
  }

  #done(answer: Buffer): void {
    this.#isBusy = false;
    if (this.#isOpen) this.#socket.send(answer, 1);
    this.#next();
  }

  #open(frame: Buffer): void {
    const { session, timeoutMs, lastZxid } = readSessionRequest(frame);
    if (lastZxid > this.#server.tree.zxid) return this.close();
    this.#server.openSession(session, timeoutMs, (opened) => {
      if (!this.#isOpen) return;
      if (opened === null) {
        this.#socket.send(sessionReply(0, 0n), 1);
        return this.close();
      }
      this.#server.supersedeOthers(opened, this);
      this.#session = opened;
      this.#done(sessionReply(timeoutMs, opened));
    });
  }

  #handle(request: ClientRequest): void {
    const { xid } = request;
    const server = this.#server;
    server.touch(this.#session);
    switch (request.type) {
      case "ping":
        return this.#done(reply(PING_XID, server.tree.zxid));
      case "write":
        return server.write(this.#session, request.writes, (result) => {
          this.#done(writeReply(request, result));
        });
      case "sync":
        return server.sync(() => {
          this.#done(reply(xid, server.tree.zxid, (writer) => writer.path(request.path)));
        });
      case "closeSession":
        this.#isEnding = true;
        return server.endSession(this.#session, () => {
          this.#done(reply(xid, server.tree.zxid));
          this.close();
        });
      case "setWatches":
        for (const path of request.paths) this.#restore(path, request.sinceZxid);
        return this.#done(reply(xid, server.tree.zxid));
      default:
        return this.#done(this.#read(request));
    }
  }

  #read(request: Read): Buffer {
    const { xid, path } = request;
    const { tree } = this.#server;
    const znode = tree.get(path);
    if (!znode) return errorReply(xid, tree.zxid, NO_NODE);
    if (request.type === "getData" && request.watches) this.#watched.add(path);
    // In an order that has nothing to do with that of their making: names begin with random digits.
    const children = tree.children(path).sort();
    return reply(xid, tree.zxid, (writer) => {
      if (request.type === "getData") writer.buffer(znode.data);
      if (request.type === "getChildren") {
        writer.list(children, (child) => writer.text(child.slice(child.lastIndexOf("/") + 1)));
      }
      writeStat(writer, statOf(znode, children.length));
    });
  }

  /** Fires at once what changed since the transaction that the client has seen last. */
  #restore(path: string, sinceZxid: bigint): void {
    const znode = this.#server.tree.get(path);
    if (!znode) this.#fire("deleted", path);
    else if (znode.mzxid > sinceZxid) this.#fire("changed", path);
    else this.#watched.add(path);
  }

  #fire(type: "deleted" | "changed", path: string): void {
    this.#watched.delete(path);
    if (this.#isOpen) this.#socket.send(eventFrame(type, path), 0);
  }
}

function writeReply(
  { xid, writes, isMulti }: Extract<ClientRequest, { readonly type: "write" }>,
  { zxid, outcome }: WriteResult,
): Buffer {
  if (typeof outcome === "number") return errorReply(xid, zxid, outcome);
  if ("error" in outcome) {
    if (!isMulti) return errorReply(xid, zxid, outcome.error);
    return reply(xid, zxid, (writer) => writeRefusedMulti(writer, outcome, writes.length));
  }
  return reply(xid, zxid, (writer) => {
    if (isMulti) writeMulti(writer, outcome);
    else for (const one of outcome) writeWritten(writer, one);
  });
}
