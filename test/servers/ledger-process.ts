// A server around the ledger in its own process, as Redis is for the Redis store. Plain node runs
// it with a port as its argument.
import { createServer, type Socket } from "node:net";
import type { Command, Instant, Push } from "../../src/rules/ledger-command.js";
import { MemoryLedger } from "../../src/stores/memory/memory-ledger.js";
import {
  type ClientLine,
  type LedgerFault,
  type LedgerReplies,
  type LedgerRequest,
  readLines,
} from "./ledger-protocol.js";

const run = `${process.pid}-${Date.now()}`;
const ledgers = new Map<string, MemoryLedger>();
const connections = new Set<Connection>();
const faults = new Set<PendingFault>();
const keptBack = new Map<string, () => void>();

/** A server that replaces a lost one may have a clock that is behind. */
const clockBehindUs = new Map<string, number>();
const AN_HOUR_US = 3_600_000_000;

interface PendingFault extends LedgerFault {
  readonly strike: () => void;
}

class Connection {
  readonly #socket: Socket;
  label = "";
  client: string | null = null;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => connections.delete(this));
    readLines(socket, (line) => void this.#onLine(line));
    connections.add(this);
  }

  send(line: object): void {
    this.#socket.write(`${JSON.stringify(line)}\n`);
  }

  break(): void {
    connections.delete(this);
    this.#socket.resetAndDestroy();
  }

  async #onLine(line: string): Promise<void> {
    // Requests that were read after the one that broke the connection are lost with it.
    if (!connections.has(this)) return;
    const request: ClientLine = JSON.parse(line);
    const value = await this.#answer(request);
    if (connections.has(this)) this.send({ id: request.id, value });
  }

  #answer(request: LedgerRequest): LedgerReplies[LedgerRequest["type"]] | Promise<null> {
    switch (request.type) {
      case "hello":
        this.label = request.label;
        this.client = request.client;
        return { pid: process.pid };
      case "execute":
        return this.#execute(request.namespace, request.commands);
      case "list":
        return ledgerOf(request.namespace).list(request.prefix, now(request.namespace));
      case "wipe":
        ledgerOf(request.namespace).forget();
        clockBehindUs.set(request.namespace, AN_HOUR_US);
        return null;
      case "size":
        return sizeOf(request.namespace);
      case "fault":
        return new Promise((resolve) => {
          faults.add({ ...request.fault, strike: () => resolve(null) });
        });
      case "deliver":
        keptBack.get(request.label)?.();
        keptBack.delete(request.label);
        return null;
    }
  }

  #execute(namespace: string, commands: readonly Command[]): LedgerReplies["execute"] {
    const execute = () => {
      const at = now(namespace);
      const ledger = ledgerOf(namespace);
      const replies = commands.map((command) => ledger.execute(command, at));
      return { nowUs: at.us, node: run, replies };
    };
    const kinds = commands.map((command) => command.type);
    if (takeFault("keepBack", this.label, kinds)) {
      keptBack.set(this.label, execute);
      this.break();
      return { nowUs: 0, node: run, replies: [] };
    }
    const execution = execute();
    if (takeFault("loseReply", this.label, kinds)) this.break();
    return execution;
  }
}

/** Returns true once for each armed fault, when its command comes. */
function takeFault(kind: string, label: string, kinds: readonly string[] = []): boolean {
  for (const fault of faults) {
    if (fault.kind !== kind || fault.label !== label) continue;
    if (fault.command !== undefined && !kinds.includes(fault.command)) continue;
    faults.delete(fault);
    fault.strike();
    return true;
  }
  return false;
}

function ledgerOf(namespace: string): MemoryLedger {
  let ledger = ledgers.get(namespace);
  if (!ledger) {
    ledger = new MemoryLedger(emit);
    ledgers.set(namespace, ledger);
  }
  return ledger;
}

/** A name drops expired entries when it is inspected. */
function sizeOf(namespace: string): number {
  const ledger = ledgerOf(namespace);
  ledger.list("", now(namespace));
  return ledger.size;
}

/** Written at once: a push to the client that caused it comes before the reply. */
function emit(push: Push): boolean {
  for (const connection of connections) {
    if (connection.client !== push.client) continue;
    if (!takeFault("dropPush", connection.label)) connection.send({ push });
    return true;
  }
  return false;
}

function now(namespace: string): Instant {
  const wallUs = Date.now() * 1000 - (clockBehindUs.get(namespace) ?? 0);
  return { us: Math.floor(performance.now() * 1000), wallUs };
}

createServer((socket) => new Connection(socket)).listen(Number(process.argv[2]), "127.0.0.1");
