import { connect, type Socket } from "node:net";
import type { ProxiedReply, ProxiedRequest } from "./framing.js";
import { ChunkFraming, type Framing, RespFraming } from "./framing.js";
import { PostgresFraming } from "./postgres-framing.js";
import { Lane, type Verdict } from "./proxy-lane.js";
import { tcpReset } from "./tcp-reset.js";
import { ZookeeperFraming } from "./zookeeper-framing.js";

/** The protocol whose whole messages the hooks see; "none": they see chunks. */
export type FramingName = "resp" | "postgres" | "zookeeper" | "none";

const FRAMINGS: Readonly<Record<FramingName, new () => Framing>> = {
  resp: RespFraming,
  postgres: PostgresFraming,
  zookeeper: ZookeeperFraming,
  none: ChunkFraming,
};

export interface LinkOptions {
  readonly targetPort: number;
  readonly framing: FramingName;
}

export interface LinkHooks {
  judgeRequest(request: ProxiedRequest, link: ProxyLink): Verdict;
  judgeReply(reply: ProxiedReply, link: ProxyLink): Verdict;
}

/** One proxied connection: a socket to the client, one to the server, a lane each way. */
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

  /** `client` is paused, so that no bytes are read before the lanes exist. */
  constructor(client: Socket, { targetPort, framing }: LinkOptions, hooks: LinkHooks) {
    const upstream = connect({ port: targetPort, host: "127.0.0.1", allowHalfOpen: true });
    this.#client = client;
    this.#upstream = upstream;
    this.requests = new Lane(upstream, () => this.reset());
    this.replies = new Lane(client, () => this.reset());
    this.#framing = new FRAMINGS[framing]();
    this.#read(hooks);
    const closed = [client, upstream].map((socket) => {
      socket.setNoDelay(true);
      // "close" follows every error.
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

  /** Keeps the connection to the server open until `close`, also after the client's end. */
  keepUpstream(): void {
    this.#keepsUpstream = true;
  }

  /**
   * Sends bytes to the server on this connection, past all faults, when the client has
   * disconnected: a client would take the reply for that of its own request. Resolves with the
   * request that the reply is `to`.
   */
  async inject(bytes: Buffer): Promise<ProxiedRequest> {
    await this.whenClientGone;
    if (!this.#upstream.writable) throw new Error("the connection to the server has ended");
    this.#upstream.write(bytes);
    const [request] = this.#framing.requests(bytes);
    return request ?? { bytes, command: "", args: [] };
  }

  /**
   * Resets the client's side. The server's side ends after the bytes that were passed on: a reset
   * could discard requests that the server has not read. A connection with a held request stays
   * open on the server's side.
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

  /** Ends both sides at once. */
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
        // Not a client of this server: it looks for a server that had the port before.
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
    // An error may follow an end: the first one counts.
    let clientIsGone = false;
    const clientGone = () => {
      if (clientIsGone || this.#keepsUpstream) return;
      clientIsGone = true;
      const { unfinishedRequest } = framing;
      if (unfinishedRequest.length > 0) this.requests.accept(unfinishedRequest, "pass");
      // Requests that the client sent before its reset must still arrive.
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
