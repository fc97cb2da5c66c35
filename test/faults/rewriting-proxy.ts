import { once } from "node:events";
import { createServer, connect as dial, type Socket } from "node:net";
import { onFreePorts } from "../servers/free-port.js";

/** A proxy that changes the words of a server. */
export interface RewritingProxy extends AsyncDisposable {
  readonly port: number;
}

/**
 * Replaces a text in all that the server says by another one of the same length: so a protocol
 * with lengths stays whole. A text that comes in two parts is not found.
 */
export function startRewritingProxy(
  targetPort: number,
  from: string,
  to: string,
): Promise<RewritingProxy> {
  if (from.length !== to.length) throw new Error("The texts must have the same length.");
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = dial(targetPort, "127.0.0.1");
    for (const socket of [client, upstream]) sockets.add(socket.on("error", () => {}));
    client.pipe(upstream);
    upstream.on("data", (bytes) => {
      client.write(Buffer.from(bytes.toString("latin1").replaceAll(from, to), "latin1"));
    });
    upstream.on("end", () => client.end());
    client.on("close", () => upstream.destroy());
  });
  const end = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  };
  return onFreePorts(1, async ([port = 0]) => {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    return { port, [Symbol.asyncDispose]: end };
  });
}
