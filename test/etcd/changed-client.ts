import type { EtcdClient } from "../../src/stores/etcd/client.js";
import type { WatchReply } from "../../src/stores/etcd/wire/messages.js";

interface Changes {
  /** Answers a call in place of `send`, which passes it on. */
  call?(path: string, request: unknown, send: () => Promise<unknown>): Promise<unknown>;
  /** Changes a reply of a stream; null drops it. */
  push?(reply: WatchReply): WatchReply | null;
  /** Called with a way to write replies into each stream that is opened. */
  tap?(write: (reply: unknown) => void): void;
}

/** A client whose calls and streams a test changes. */
export function changedClient(client: EtcdClient, { call, push, tap }: Changes): EtcdClient {
  return {
    call: (method, request, sending) => {
      const send = () => client.call(method, request, sending);
      return call ? (call(method.path, request, send) as ReturnType<typeof send>) : send();
    },
    openStream(method, listener) {
      tap?.((reply) => listener.onReply(reply as never));
      return client.openStream(method, {
        onReply(reply) {
          const passed = push ? push(reply as WatchReply) : reply;
          if (passed !== null) listener.onReply(passed as typeof reply);
        },
        onEnd: (error) => listener.onEnd(error),
      });
    },
    close: () => client.close(),
  };
}
