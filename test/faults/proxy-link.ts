import { connect, type Socket } from "node:net";
import type { ProxiedReply, ProxiedRequest } from "./framing.js";
import { ChunkFraming, type Framing, RespFraming } from "./framing.js";
import { Lane, type Verdict } from "./proxy-lane.js";
import { tcpReset } from "./tcp-reset.js";

export interface LinkOptions {
  readonly targetPort: number;
  readonly framing: "resp" | "none";
}

export interface LinkHooks {
  judgeRequest(request: ProxiedRequest, link: ProxyLink): Verdict;
  judgeReply(reply: ProxiedReply, link: ProxyLink): Verdict;
}

/** One proxied connection: the client's socket, the one to the server, and a lane each way. */
export class ProxyLink {
  readonly requests: Lane;
  readonly replies: Lane;
  /** Resolves when both sides have closed. */
  readonly whenClosed: Promise<void>;
  /** Resolves when the client has ended its side. */
  readonly whenClientGone: Promise<void>;
  readonly #client: Socket;
  readonly #upstream: Socket;
  readonly #framing: Framing;
  #keepsUpstream = false;
  #isOver = false;

  /** `client` comes paused, so that nothing is read before the lanes are there. */
  constructor(client: Socket, { targetPort, framing }: LinkOptions, hooks: LinkHooks) {
    const upstream = connect({ port: targetPort, host: "127.0.0.1", allowHalfOpen: true });
    this.#client = client;
    this.#upstream = upstream;
    this.requests = new Lane(upstream, () => this.reset());
    this.replies = new Lane(client, () => this.reset());
    this.#framing = framing === "resp" ? new RespFraming() : new ChunkFraming();
    this.#read(hooks);
    const closed = [client, upstream].map((socket) => {
      socket.setNoDelay(true);
      // "close" follows every error and tells of it.
      socket.on("error", () => undefined);
      return new Promise((resolve) => socket.once("close", resolve));
    });
    this.whenClosed = Promise.all(closed).then(() => undefined);
    this.whenClientGone = new Promise((resolve) => {
      client.once("end", resolve);
      client.once("close", () => resolve());
    });
    client.resume();
  }

  /** From now on the server does not learn when the client goes; its side stays until `close`. */
  keepUpstream(): void {
    this.#keepsUpstream = true;
  }

  /**
   * Waits until the client has gone, which would take the reply for that to one of its own
   * requests; then sends bytes to the server on this connection, past all faults. Resolves with
   * what the reply will be `to`.
   */
  async inject(bytes: Buffer): Promise<ProxiedRequest> {
    await this.whenClientGone;
    if (!this.#upstream.writable) throw new Error("the connection to the server has ended");
    this.#upstream.write(bytes);
    const [request] = this.#framing.requests(bytes);
    return request ?? { bytes, command: "", args: [] };
  }

  /**
   * The client sees a reset. The server sees an end, after what was passed on to it: a reset could
   * wipe out requests that it has received but not read. A connection that keeps a request for
   * later stays open on the server's side.
   */
  reset(): void {
    tcpReset(this.#client);
    this.replies.clear();
    this.replies.lose();
    if (this.#keepsUpstream) return;
    if (this.requests.isHolding) {
      this.requests.finish("end");
    } else {
      this.#isOver = true;
      this.requests.clear();
      this.requests.lose();
      this.#upstream.destroySoon();
    }
  }

  /** Ends both sides, whatever is under way. */
  close(): void {
    this.#isOver = true;
    this.requests.clear();
    this.replies.clear();
    this.#client.destroy();
    this.#upstream.destroy();
  }

  #read(hooks: LinkHooks): void {
    const framing = this.#framing;
    const client = this.#client;
    const upstream = this.#upstream;
    client.on("data", (chunk) => {
      let requests: ReturnType<typeof framing.requests>;
      try {
        requests = framing.requests(chunk);
      } catch {
        // No client of this server: somebody looks for one that had the port before.
        return this.close();
      }
      for (const request of requests) {
        if (this.#isOver) return;
        this.requests.accept(request.bytes, hooks.judgeRequest(request, this));
      }
    });
    upstream.on("data", (chunk) => {
      for (const reply of framing.replies(chunk)) {
        if (this.#isOver) return;
        this.replies.accept(reply.bytes, hooks.judgeReply(reply, this));
      }
    });
    // An end may be followed by an error: the first counts.
    let clientIsGone = false;
    const clientGone = () => {
      if (clientIsGone || this.#keepsUpstream) return;
      clientIsGone = true;
      const { unfinishedRequest } = framing;
      if (unfinishedRequest.length > 0) this.requests.accept(unfinishedRequest, "pass");
      // Also after a reset by the client: what it sent before must still arrive.
      this.requests.finish("end");
    };
    let serverIsGone = false;
    const serverGone = (how: "end" | "reset") => {
      if (serverIsGone) return;
      serverIsGone = true;
      const { unfinishedReply } = framing;
      if (unfinishedReply.length > 0) this.replies.accept(unfinishedReply, "pass");
      this.replies.finish(how);
    };
    client.once("end", clientGone);
    client.once("close", (failed) => failed && clientGone());
    upstream.once("end", () => serverGone("end"));
    upstream.once("close", (failed) => failed && serverGone("reset"));
  }
}
