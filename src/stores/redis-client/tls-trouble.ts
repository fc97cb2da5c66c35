import type { Address, TlsFiles } from "../store-url.js";

/** A server refuses the certificate of its client only after the client is connected. */
const QUIET_MS = 1_000;

/**
 * Why there is no secure connection to a server; null where there is one. Clients of Redis may lose
 * the cause: their first command meets a closed connection before they read the alert, and ioredis
 * does not report the failures of sentinels and of nodes of a Cluster.
 */
export function tlsTrouble(server: Address, tls: TlsFiles): Promise<Error | null> {
  return new Promise((resolve) => {
    const { connect } = process.getBuiltinModule("node:tls");
    const socket = connect({ ...server, ...tls, timeout: QUIET_MS });
    socket.once("error", resolve);
    socket.once("close", () => resolve(null));
    for (const event of ["timeout", "data"]) socket.once(event, () => socket.destroy());
    socket.unref();
  });
}
