import type { Faults } from "../../src/conformance/index.js";
import type { ProxiedRequest } from "../faults/framing.js";
import { holdRequest } from "../faults/late-copy.js";
import { loseReply } from "../faults/message-loss.js";
import { nextPush } from "../faults/next-push.js";
import { type FaultProxy, startProxy } from "../faults/proxy.js";
import type { RedisServer } from "../servers/redis.js";
import { startAll } from "../servers/server-process.js";
import type { Client } from "./clients.js";
import { carries } from "./trial.js";

/** A client that reaches every server of its deployment through a proxy. */
export interface ProxiedClient {
  readonly client: Client;
  readonly proxies: readonly FaultProxy[];
}

/** Starts a proxy for each server. */
export function startProxies(servers: readonly RedisServer[]): Promise<FaultProxy[]> {
  const targets = servers.map(({ port }) => ({ targetPort: port, framing: "resp" }) as const);
  return startAll(targets.map((target) => startProxy(target)));
}

/** The faults of the conformance kit, made by the proxies of one client. */
export function redisFaults(proxies: readonly FaultProxy[]): Faults {
  const subscribed = Promise.race(
    proxies.map((proxy) => nextPush(proxy, { kind: "subscribe" }, "pass")),
  );
  return {
    loseReply(to) {
      const match = firstOf(carries(to));
      return { struck: Promise.race(proxies.map((proxy) => loseReply(proxy, { match }).struck)) };
    },
    keepBack(command) {
      const match = firstOf(carries(command));
      const struck = Promise.race(
        proxies.map(async (proxy) => {
          const held = holdRequest(proxy, { match, resets: true });
          await held.caught;
          return held;
        }),
      );
      return { struck, deliver: async () => (await struck).deliver() };
    },
    async dropPush() {
      await subscribed;
      const dropped = proxies.map((proxy) => nextPush(proxy, { kind: "message" }, "drop"));
      return { struck: Promise.race(dropped) };
    },
    cut() {
      for (const proxy of proxies) proxy.cut();
    },
    async heal() {
      await Promise.all(proxies.map((proxy) => proxy.heal()));
    },
  };
}

/** Matches one request only, whichever proxy sees it. */
function firstOf(
  match: (request: ProxiedRequest) => boolean,
): (request: ProxiedRequest) => boolean {
  let isOver = false;
  return (request) => {
    const isFirst = !isOver && match(request);
    isOver ||= isFirst;
    return isFirst;
  };
}
