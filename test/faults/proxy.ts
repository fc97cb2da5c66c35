import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { onFreePorts } from "../servers/free-port.js";
import type { ProxiedReply, ProxiedRequest } from "./framing.js";
import type { Flow, Lane, Verdict } from "./proxy-lane.js";
import { type FramingName, ProxyLink } from "./proxy-link.js";

export type Direction = "requests" | "replies" | "both";

/** Undefined leaves the decision to the next hook. Without a decision: "pass". */
export type RequestHook = (request: ProxiedRequest, link: ProxyLink) => Verdict | undefined;
export type ReplyHook = (reply: ProxiedReply, link: ProxyLink) => Verdict | undefined;

export interface ProxyOptions {
  readonly targetPort: number;
  /** Hooks and counters see whole messages of this protocol. Default "none": they see chunks. */
  readonly framing?: FramingName;
}

export interface ProxyCounters {
  /** Connections accepted so far. */
  readonly connections: number;
  readonly requests: { readonly chunks: number; readonly bytes: number };
  readonly replies: { readonly chunks: number; readonly bytes: number };
}

/**
 * A TCP proxy on 127.0.0.1 that makes faults. Until `heal`, settings apply to every connection, old
 * and new. For one connection, use the lanes of its link.
 */
export class FaultProxy implements AsyncDisposable {
  readonly port: number;
  readonly targetPort: number;
  readonly links: Set<ProxyLink> = new Set();
  readonly #options: Required<ProxyOptions>;
  readonly #server: Server;
  readonly #requestHooks = new Set<RequestHook>();
  readonly #replyHooks = new Set<ReplyHook>();
  readonly #seenBefore = { requests: { chunks: 0, bytes: 0 }, replies: { chunks: 0, bytes: 0 } };
  readonly #delayMs = { requests: 0, replies: 0 };
  readonly #flow: Record<"requests" | "replies", Flow> = { requests: "open", replies: "open" };
  #connections = 0;
  #accepts = true;
  #unaccepted: Socket[] = [];

  constructor(port: number, { targetPort, framing = "none" }: ProxyOptions) {
    this.port = port;
    this.targetPort = targetPort;
    this.#options = { targetPort, framing };
    this.#server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) => {
      if (this.#accepts) this.#open(client);
      else this.#unaccepted.push(client);
    });
  }

  get counters(): ProxyCounters {
    const total = (direction: "requests" | "replies") => {
      const parts = [
        this.#seenBefore[direction],
        ...[...this.links].map((link) => link[direction].seen),
      ];
      const sum = (field: "chunks" | "bytes") => parts.reduce((n, part) => n + part[field], 0);
      return { chunks: sum("chunks"), bytes: sum("bytes") };
    };
    return {
      connections: this.#connections,
      requests: total("requests"),
      replies: total("replies"),
    };
  }

  /** Calls the hook for each request, in the order of registration. Returns its removal. */
  onRequest(hook: RequestHook): () => void {
    this.#requestHooks.add(hook);
    return () => this.#requestHooks.delete(hook);
  }

  onReply(hook: ReplyHook): () => void {
    this.#replyHooks.add(hook);
    return () => this.#replyHooks.delete(hook);
  }

  /** Delays bytes that arrive from now on, in their order. */
  delay(direction: Direction, delayMs: number): void {
    for (const one of each(direction)) {
      this.#delayMs[one] = delayMs;
      for (const link of this.links) link[one].delayMs = delayMs;
    }
  }

  /** Keeps bytes back until `heal`, which delivers them even if the client has disconnected. */
  stall(direction: Direction): void {
    this.#setFlow(direction, "stalled", (lane) => lane.stall());
  }

  /** Delivers bytes that `stall` kept back, and lets later ones pass. Other faults go on. */
  unstall(direction: Direction): void {
    for (const one of each(direction)) {
      if (this.#flow[one] === "stalled") this.#setFlow(one, "open", (lane) => lane.unstall());
    }
  }

  /** Loses bytes for good. Connections stay half-open until `heal` resets them. */
  blackhole(direction: Direction): void {
    this.#setFlow(direction, "lost", (lane) => lane.lose());
  }

  /** Resets all connections, and accepts new ones. */
  reset(): void {
    for (const link of [...this.links]) link.reset();
  }

  /** Leaves new connections open but without an answer until `heal`. */
  pauseAccept(): void {
    this.#accepts = false;
  }

  /** Refuses new connections until `heal`; open ones stay. */
  refuse(): void {
    if (this.#server.listening) this.#server.close();
  }

  /** Resets all connections and refuses new ones until `heal`. */
  cut(): void {
    this.refuse();
    this.reset();
  }

  /**
   * Ends all faults except hooks: delivers stalled bytes and resets connections that lost bytes.
   * Bytes that a hook holds stay held.
   */
  async heal(): Promise<void> {
    this.delay("both", 0);
    this.#flow.requests = "open";
    this.#flow.replies = "open";
    for (const link of [...this.links]) {
      if (link.requests.flow === "lost" || link.replies.flow === "lost") link.reset();
      link.requests.unstall();
      link.replies.unstall();
    }
    this.#accepts = true;
    for (const client of this.#unaccepted.splice(0)) this.#open(client);
    if (!this.#server.listening) await this.listen();
  }

  async listen(): Promise<void> {
    this.#server.listen(this.port, "127.0.0.1");
    await once(this.#server, "listening");
  }

  async close(): Promise<void> {
    this.refuse();
    for (const link of [...this.links]) link.close();
    for (const client of this.#unaccepted.splice(0)) client.destroy();
    await Promise.all([...this.links].map((link) => link.whenClosed));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #open(client: Socket): void {
    this.#connections += 1;
    const link = new ProxyLink(client, this.#options, {
      judgeRequest: (request) => firstVerdict(this.#requestHooks, (hook) => hook(request, link)),
      judgeReply: (reply) => firstVerdict(this.#replyHooks, (hook) => hook(reply, link)),
    });
    for (const one of each("both")) {
      link[one].delayMs = this.#delayMs[one];
      if (this.#flow[one] === "stalled") link[one].stall();
      if (this.#flow[one] === "lost") link[one].lose();
    }
    this.links.add(link);
    void link.whenClosed.then(() => this.#forget(link));
  }

  #forget(link: ProxyLink): void {
    this.links.delete(link);
    for (const one of each("both")) {
      this.#seenBefore[one].chunks += link[one].seen.chunks;
      this.#seenBefore[one].bytes += link[one].seen.bytes;
    }
  }

  #setFlow(direction: Direction, flow: Flow, set: (lane: Lane) => void): void {
    for (const one of each(direction)) {
      this.#flow[one] = flow;
      for (const link of this.links) set(link[one]);
    }
  }
}

export async function startProxy(options: ProxyOptions): Promise<FaultProxy> {
  return await onFreePorts(1, async ([port = 0]) => {
    const proxy = new FaultProxy(port, options);
    await proxy.listen();
    return proxy;
  });
}

function each(direction: Direction): readonly ("requests" | "replies")[] {
  return direction === "both" ? ["requests", "replies"] : [direction];
}

function firstVerdict<Hook>(
  hooks: Iterable<Hook>,
  call: (hook: Hook) => Verdict | undefined,
): Verdict {
  // A copy, because a hook for one message removes itself.
  for (const hook of [...hooks]) {
    const verdict = call(hook);
    if (verdict !== undefined) return verdict;
  }
  return "pass";
}
