import type { Command, Fault, Faults, LateRequest } from "../../src/conformance/index.js";
import type {
  EtcdClient,
  EtcdStream,
  TxnRequest,
  WatchReply,
} from "../../src/stores/etcd/etcd-client.js";

type MessageFaults = Pick<Faults, "loseReply" | "keepBack" | "dropPush">;

interface Armed {
  readonly command: Command;
  strike(send: () => Promise<unknown>): Promise<unknown>;
}

/** The same client, with faults: lost and late messages. */
export function faultyEtcdClient(
  client: EtcdClient,
): MessageFaults & { readonly client: EtcdClient } {
  const armed: Armed[] = [];
  let drop: (() => void) | undefined;
  /** The last revision that the client knows of. */
  let known = 0;

  const pass = <T>(command: Command | null, send: () => Promise<T>): Promise<T> => {
    const index = armed.findIndex((one) => one.command === command);
    const [fault] = index < 0 ? [] : armed.splice(index, 1);
    return fault ? (fault.strike(send) as Promise<T>) : send();
  };

  const arm = (
    command: Command,
    strike: (send: () => Promise<unknown>) => Promise<unknown>,
  ): Fault => {
    const struck = new Promise<void>((resolve) => {
      armed.push({
        command,
        strike(send) {
          resolve();
          return strike(send);
        },
      });
    });
    return { struck };
  };

  return {
    loseReply: (to) => arm(to, (send) => send().then(() => new Promise(() => {}))),
    keepBack(command): LateRequest {
      let late: () => Promise<unknown> = () => Promise.resolve();
      const fault = arm(command, (send) => {
        late = send;
        return Promise.reject(new Error("14 UNAVAILABLE: Connection dropped"));
      });
      return { ...fault, deliver: () => late().catch(() => undefined) };
    },
    dropPush() {
      return { struck: new Promise<void>((resolve) => (drop = resolve)) };
    },
    client: {
      kv: {
        txn: (request, options) =>
          pass(commandOf(request), async () => {
            const reply = await client.kv.txn(request, options);
            known = Math.max(known, Number(reply.header.revision));
            return reply;
          }),
        range: (request, options) => client.kv.range(request, options),
        deleteRange: (request, options) =>
          pass("release", () => client.kv.deleteRange(request, options)),
      },
      leaseClient: {
        leaseGrant: (request, options) => client.leaseClient.leaseGrant(request, options),
        leaseRevoke: (request, options) => client.leaseClient.leaseRevoke(request, options),
        leaseTimeToLive: (request, options) => client.leaseClient.leaseTimeToLive(request, options),
        leaseKeepAlive: () => pass("renew", () => client.leaseClient.leaseKeepAlive()),
      },
      watchClient: {
        async watch() {
          const stream = await client.watchClient.watch();
          return filtered(stream, (reply) => {
            if (!drop) return reply;
            // The client must not learn from the revision that it missed an event. If that comes
            // with the start of a watch, no event follows.
            const { header, events } = reply;
            const isNews = events.length > 0 || (reply.created && Number(header.revision) > known);
            if (isNews) {
              drop();
              drop = undefined;
            }
            return events.length > 0 ? null : { ...reply, header: { ...header, revision: "0" } };
          });
        },
      },
    },
  };
}

/** An acquire creates a key (create_revision 0); a release deletes a key first. */
function commandOf({ compare, success }: TxnRequest): Command | null {
  const [first] = success ?? [];
  if (first && "request_delete_range" in first) return "release";
  const makes = compare?.some(({ create_revision }) => create_revision === "0");
  return makes && first && "request_put" in first ? "acquire" : null;
}

function filtered<Request>(
  stream: EtcdStream<Request, WatchReply>,
  pass: (reply: WatchReply) => WatchReply | null,
): EtcdStream<Request, WatchReply> {
  return new Proxy(stream, {
    get(target, property) {
      if (property === "on") {
        return (event: string, listener: (reply: WatchReply) => void) =>
          target.on(event as "data", (reply) => {
            const passed = event === "data" ? pass(reply) : reply;
            if (passed !== null) listener(passed);
          });
      }
      const value = Reflect.get(target, property, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
