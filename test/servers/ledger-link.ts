import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { StoreError } from "../../src/errors/index.js";
import type { Push } from "../../src/rules/ledger-command.js";
import {
  type LedgerReplies,
  type LedgerRequest,
  readLines,
  type ServerLine,
} from "./ledger-protocol.js";

interface Pending {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** One connection to the ledger server. It keeps the process alive only while a reply is due. */
export class LedgerLink {
  readonly #socket: Socket;
  readonly #pending = new Map<number, Pending>();
  /** Resolves when the connection has ended. Requests without a reply are unknown then. */
  readonly closed: Promise<void>;
  onPush: (push: Push) => void = () => {};
  #requests = 0;
  #isOpen = true;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.unref();
    readLines(socket, (line) => this.#onLine(JSON.parse(line)));
    this.closed = new Promise((resolve) => {
      socket.once("close", () => {
        this.#isOpen = false;
        for (const { reject } of this.#pending.values()) reject(broken());
        this.#pending.clear();
        resolve();
      });
    });
    socket.on("error", () => socket.destroy());
  }

  static async connect(port: number): Promise<LedgerLink> {
    const socket = connect(port, "127.0.0.1");
    try {
      await once(socket, "connect");
    } catch (cause) {
      const message = "The ledger server cannot be reached.";
      throw new StoreError(message, { outcome: "not_applied", cause });
    }
    return new LedgerLink(socket);
  }

  ask<R extends LedgerRequest>(request: R): Promise<LedgerReplies[R["type"]]> {
    const id = ++this.#requests;
    return new Promise((resolve, reject) => {
      if (!this.#isOpen) return reject(broken());
      this.#pending.set(id, { resolve: resolve as Pending["resolve"], reject });
      this.#socket.ref();
      this.#socket.write(`${JSON.stringify({ ...request, id })}\n`);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #onLine(line: ServerLine): void {
    if ("push" in line) return this.onPush(line.push);
    this.#pending.get(line.id)?.resolve(line.value);
    this.#pending.delete(line.id);
    if (this.#pending.size === 0) this.#socket.unref();
  }
}

function broken(): StoreError {
  return new StoreError("The connection to the ledger server broke.", { outcome: "unknown" });
}
