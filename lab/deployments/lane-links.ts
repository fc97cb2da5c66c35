import type { ProxiedReply } from "../../test/faults/framing.js";
import { type HeldRequest, holdRequest } from "../../test/faults/late-copy.js";
import { loseRequest } from "../../test/faults/message-loss.js";
import type { FaultProxy } from "../../test/faults/proxy.js";
import type { ProxyLink } from "../../test/faults/proxy-link.js";
import { waitUntil } from "../../test/servers/wait-until.js";
import type { Wire } from "./wire.js";

/** The connections of one process to the servers, each through a proxy of its own. */
export class LaneLinks {
  readonly proxies: readonly FaultProxy[];
  readonly #wire: Wire;
  #isStalled = false;

  constructor(proxies: readonly FaultProxy[], wire: Wire) {
    this.proxies = proxies;
    this.#wire = wire;
  }

  get ports(): readonly number[] {
    return this.proxies.map(({ port }) => port);
  }

  /** Resolves when every server has answered the next request about the lock, in vain. */
  async loseReplies(): Promise<void> {
    const links = await Promise.all(this.proxies.map((proxy) => this.#holdReply(proxy)));
    for (const link of links) link.reset();
  }

  /** Resolves when a server has answered the next request about the lock; no answer arrives. */
  async holdReplies(): Promise<void> {
    await Promise.race(this.proxies.map((proxy) => this.#holdReply(proxy)));
  }

  /** Resolves when a server has answered the next request about the lock. */
  async answered(): Promise<void> {
    const { isAboutLock, isTaken, tookEffect } = this.#wire;
    const isAnswer = (reply: ProxiedReply): boolean =>
      // Without framing, the reply that follows the request is taken for its answer.
      isTaken ? isAsked : reply.to !== null && isAboutLock(reply.to) && tookEffect(reply);
    let isAsked = false;
    const removals = this.proxies.map((proxy) =>
      proxy.onRequest((request) => {
        isAsked ||= isAboutLock(request);
        return undefined;
      }),
    );
    await Promise.race(this.proxies.map((proxy) => nextReply(proxy, isAnswer, "pass")));
    for (const remove of removals) remove();
  }

  /** Keeps the next request about the lock back, and breaks the connection. */
  holdRequests(): readonly HeldRequest[] {
    const match = this.#wire.isAboutLock;
    return this.proxies.map((proxy) => holdRequest(proxy, { match, resets: true }));
  }

  /** From the next WAIT on, no request passes, and no new connection. Resolves at that WAIT. */
  async cutAtWait(): Promise<void> {
    await Promise.race(this.proxies.map((one) => loseRequest(one, { match: "WAIT" }).struck));
    for (const proxy of this.proxies) proxy.cut();
  }

  delayRequests(delayMs: number): void {
    for (const proxy of this.proxies) proxy.delay("requests", delayMs);
  }

  get isStalled(): boolean {
    return this.#isStalled;
  }

  stallRequests(): void {
    this.#isStalled = true;
    for (const proxy of this.proxies) proxy.stall("requests");
  }

  unstallRequests(): void {
    this.#isStalled = false;
    for (const proxy of this.proxies) proxy.unstall("requests");
  }

  async heal(): Promise<void> {
    this.#isStalled = false;
    await Promise.all(this.proxies.map((proxy) => proxy.heal()));
  }

  /** Keeps the reply back to the next request about the lock that takes effect. */
  async #holdReply(proxy: FaultProxy): Promise<ProxyLink> {
    const { isAboutLock, isTaken, tookEffect } = this.#wire;
    if (!isTaken) {
      const isChosen = (reply: ProxiedReply): boolean =>
        reply.to !== null && isAboutLock(reply.to) && tookEffect(reply);
      return await nextReply(proxy, isChosen, "hold");
    }
    const link = await new Promise<ProxyLink>((resolve) => {
      const remove = proxy.onRequest((request, from) => {
        if (!isAboutLock(request)) return undefined;
        remove();
        from.replies.stall();
        resolve(from);
        return undefined;
      });
    });
    await waitUntil(isTaken, { what: "the store has the request", everyMs: 1 });
    return link;
  }
}

/** "hold" keeps back the next reply that is chosen, and all later ones on its connection. */
function nextReply(
  proxy: FaultProxy,
  isChosen: (reply: ProxiedReply) => boolean,
  verdict: "hold" | "pass",
): Promise<ProxyLink> {
  return new Promise((resolve) => {
    const remove = proxy.onReply((reply, link) => {
      if (!isChosen(reply)) return undefined;
      remove();
      resolve(link);
      return verdict;
    });
  });
}
