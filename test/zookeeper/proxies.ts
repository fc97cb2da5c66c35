import type { Command, Faults } from "../../src/conformance/index.js";
import type { ProxiedRequest } from "../faults/framing.js";
import { holdRequest } from "../faults/late-copy.js";
import type { FaultProxy } from "../faults/proxy.js";

/** The request that carries each command of a mutex. */
const CARRIERS: Readonly<Record<Command, string>> = {
  acquire: "CREATE2",
  renew: "MULTI",
  release: "DELETE",
};

/** The faults of the conformance kit, made by the proxies of one client. */
export function zookeeperFaults(proxies: readonly FaultProxy[]): Faults {
  const watched = Promise.race(proxies.map(watchSet));
  return {
    loseReply(to) {
      return { struck: Promise.race(proxies.map((proxy) => loseReply(proxy, CARRIERS[to]))) };
    },
    keepBack(command) {
      const match = first(CARRIERS[command]);
      const struck = Promise.race(
        proxies.map(async (proxy) => {
          const held = holdRequest(proxy, { match, resets: true });
          await held.caught;
          return held;
        }),
      );
      // The server may have ended that connection: it refuses the request without an answer.
      const deliver = async () => (await struck).deliver().catch(() => undefined);
      return { struck, deliver };
    },
    async dropPush() {
      await watched;
      return { struck: Promise.race(proxies.map(dropPush)) };
    },
    cut() {
      for (const proxy of proxies) proxy.cut();
    },
    async heal() {
      await Promise.all(proxies.map((proxy) => proxy.heal()));
    },
  };
}

/** Loses the reply to a request that took effect: the first one in a new queue is refused. */
function loseReply(proxy: FaultProxy, command: string): Promise<void> {
  return new Promise((resolve) => {
    const remove = proxy.onReply(({ to, value }) => {
      if (to?.command !== command || value !== 0) return undefined;
      remove();
      resolve();
      return "reset";
    });
  });
}

/** Resolves when a server has answered a request that sets a watch. */
function watchSet(proxy: FaultProxy): Promise<void> {
  return new Promise((resolve) => {
    const remove = proxy.onReply(({ to, value }) => {
      if (to?.command !== "GETDATA" || to.bytes.at(-1) !== 1 || value !== 0) return undefined;
      remove();
      resolve();
      return undefined;
    });
  });
}

function dropPush(proxy: FaultProxy): Promise<void> {
  return new Promise((resolve) => {
    const remove = proxy.onReply(({ pushed }) => {
      if (!pushed) return undefined;
      remove();
      resolve();
      return "drop";
    });
  });
}

/** Matches one request only, whichever proxy sees it. */
function first(command: string): (request: ProxiedRequest) => boolean {
  let isOver = false;
  return (request) => {
    const isFirst = !isOver && request.command === command;
    isOver ||= isFirst;
    return isFirst;
  };
}
