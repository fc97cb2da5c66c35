import type { Command, Fault, Faults, LateRequest } from "../../src/conformance/index.js";
import type { EtcdClient } from "../../src/stores/etcd/client.js";
import {
  DELETE,
  KEEP_ALIVE,
  TXN,
  type TxnReply,
  type TxnRequest,
  type WatchReply,
} from "../../src/stores/etcd/wire/messages.js";
import { changedClient } from "./changed-client.js";

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
  let known = 0n;

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
        return Promise.reject(new Error("Connection dropped"));
      });
      return { ...fault, deliver: () => late().catch(() => undefined) };
    },
    dropPush() {
      return { struck: new Promise<void>((resolve) => (drop = resolve)) };
    },
    client: changedClient(client, {
      async call(path, request, send) {
        const command = commandOf(path, request);
        const index = armed.findIndex((one) => one.command === command);
        const [fault] = index < 0 ? [] : armed.splice(index, 1);
        const reply = await (fault ? fault.strike(send) : send());
        const { revision } = path === TXN.path ? (reply as TxnReply).header : { revision: 0n };
        if (revision > known) known = revision;
        return reply;
      },
      push(reply: WatchReply) {
        if (!drop) return reply;
        // The client must not learn from the revision that it missed an event. If that comes with
        // the start of a watch, no event follows.
        const { header, events } = reply;
        const isNews = events.length > 0 || (reply.created && header.revision > known);
        if (isNews) {
          drop();
          drop = undefined;
        }
        return events.length > 0 ? null : { ...reply, header: { ...header, revision: 0n } };
      },
    }),
  };
}

/** An acquire creates a key (createRevision 0); a release deletes a key first. */
function commandOf(path: string, request: unknown): Command | null {
  if (path === KEEP_ALIVE.path) return "renew";
  if (path === DELETE.path) return "release";
  if (path !== TXN.path) return null;
  const { compare, success } = request as TxnRequest;
  const [first] = success ?? [];
  if (first && "requestDeleteRange" in first) return "release";
  const makes = compare?.some(({ createRevision }) => createRevision === 0n);
  return makes && first && "requestPut" in first ? "acquire" : null;
}
