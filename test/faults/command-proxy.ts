import { once } from "node:events";
import { createServer, connect as dial, type Server, type Socket } from "node:net";
import { onFreePorts } from "../servers/free-port.js";
import { readMessage } from "../servers/resp.js";

/** Passes a command on, over this or a new connection to the server, or answers it itself. */
export type Treatment = "pass" | "anew" | { readonly reply: string };

/** `command` is in small letters. */
export type Treat = (command: string, args: readonly string[]) => Treatment | Promise<Treatment>;

/** A proxy that understands Redis, passes on one command at a time, and treats each as told. */
export class CommandProxy implements AsyncDisposable {
  readonly port: number;
  readonly #server: Server;
  readonly #clients = new Set<Socket>();

  constructor(port: number, targetPort: number, treat: Treat) {
    this.port = port;
    this.#server = createServer((client) => {
      this.#clients.add(client.on("error", () => {}));
      void serve(client, targetPort, treat).catch(() => client.destroy());
    });
  }

  async listen(): Promise<this> {
    this.#server.listen(this.port, "127.0.0.1");
    await once(this.#server, "listening");
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) client.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

export function startCommandProxy(targetPort: number, treat: Treat): Promise<CommandProxy> {
  return onFreePorts(1, ([port = 0]) => new CommandProxy(port, targetPort, treat).listen());
}

async function serve(client: Socket, targetPort: number, treat: Treat): Promise<void> {
  const dialled = (): Socket => {
    const upstream = dial(targetPort, "127.0.0.1").on("error", () => {});
    client.once("close", () => upstream.destroy());
    return upstream;
  };
  let upstream = dialled();
  let replies = messages(upstream);
  for await (const { bytes, value } of messages(client)) {
    const [command = "", ...args] = (value as string[]).map(String);
    const treatment = await treat(command.toLowerCase(), args);
    if (typeof treatment === "object") {
      client.write(treatment.reply);
      continue;
    }
    if (treatment === "anew") {
      upstream = dialled();
      replies = messages(upstream);
    }
    upstream.write(bytes);
    if (/^subscribe$/i.test(command)) break;
    const reply = await replies.next();
    if (reply.done) return void client.destroy();
    client.write(reply.value.bytes);
  }
  // A subscriber gets messages without requests.
  for await (const { bytes } of replies) client.write(bytes);
}

async function* messages(socket: Socket): AsyncGenerator<{ bytes: Buffer; value: unknown }> {
  let received: Buffer = Buffer.alloc(0);
  for await (const chunk of socket) {
    received = Buffer.concat([received, chunk as Buffer]);
    for (let message = readMessage(received); message; message = readMessage(received)) {
      yield { bytes: received.subarray(0, message.end), value: message.value };
      received = received.subarray(message.end);
    }
  }
}
