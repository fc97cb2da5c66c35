import { createServer, connect as dial, type Server, type Socket } from "node:net";

interface Link {
  readonly from: string;
  readonly to: number;
  readonly sockets: readonly Socket[];
}

/** A member names itself in every request to another member. */
const SENDER = /^x-server-from: *([0-9a-f]+)/im;

/**
 * The network between the members of an etcd cluster. Each member is reached through its own gate,
 * which learns the caller from the first request of a connection. So one member can be cut off from
 * all other members in both directions, while clients still reach it.
 */
export class PeerNetwork implements AsyncDisposable {
  readonly #gates: readonly Server[];
  readonly #links = new Set<Link>();
  #cutOff: { readonly id: string; readonly gate: number } | null = null;

  private constructor(targetPorts: readonly number[]) {
    this.#gates = targetPorts.map((targetPort, gate) =>
      createServer((socket) => this.#onConnection(socket, gate, targetPort)),
    );
  }

  /** One gate for each of the ports that the members listen on. */
  static async open(targetPorts: readonly number[]): Promise<PeerNetwork> {
    const network = new PeerNetwork(targetPorts);
    const listening = network.#gates.map(
      (gate) => new Promise<void>((resume) => gate.listen(0, "127.0.0.1", resume)),
    );
    await Promise.all(listening);
    return network;
  }

  get ports(): readonly number[] {
    return this.#gates.map((gate) => (gate.address() as { port: number }).port);
  }

  /** Cuts off the member with this id (in hexadecimal) behind this gate, in both directions. */
  cutOff(id: string, gate: number): void {
    this.#cutOff = { id, gate };
    for (const link of this.#links) {
      if (this.#isCut(link.from, link.to)) for (const socket of link.sockets) socket.destroy();
    }
  }

  heal(): void {
    this.#cutOff = null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { sockets } of this.#links) for (const socket of sockets) socket.destroy();
    await Promise.all(
      this.#gates.map((gate) => new Promise<void>((resume) => gate.close(() => resume()))),
    );
  }

  #isCut(from: string, to: number): boolean {
    return this.#cutOff !== null && (this.#cutOff.id === from || this.#cutOff.gate === to);
  }

  #onConnection(socket: Socket, to: number, targetPort: number): void {
    socket.on("error", () => {});
    socket.once("data", (first) => {
      const from = SENDER.exec(String(first))?.[1] ?? "";
      if (this.#isCut(from, to)) return void socket.destroy();
      const target = dial(targetPort, "127.0.0.1");
      const link = { from, to, sockets: [socket, target] };
      this.#links.add(link);
      for (const end of link.sockets) {
        end.on("error", () => {});
        end.on("close", () => {
          this.#links.delete(link);
          for (const other of link.sockets) other.destroy();
        });
      }
      target.write(first);
      socket.pipe(target);
      target.pipe(socket);
    });
  }
}
