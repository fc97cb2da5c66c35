import { connect } from "node:net";
import type { Address, TlsFiles } from "../../store-url.js";

/** The part of a socket that this client uses. */
export interface ServerSocket {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  on(event: "data", listener: (chunk: Buffer) => void): unknown;
  on(event: "error", listener: (error: NodeJS.ErrnoException) => void): unknown;
  on(event: "close", listener: () => void): unknown;
  write(bytes: Uint8Array): unknown;
  destroy(): unknown;
}

/** Opens a connection that keeps no process alive. `onReady`: bytes can be sent. */
export type OpenSocket = (
  address: Address,
  tls: TlsFiles | null,
  onReady: () => void,
) => ServerSocket;

export const openSocket: OpenSocket = (address, tls, onReady) => {
  const { host, port } = address;
  // Loaded here: most programs use no TLS.
  const socket = tls
    ? process.getBuiltinModule("node:tls").connect({ host, port, ...tls }, onReady)
    : connect({ host, port }, onReady);
  return socket.setNoDelay(true).unref();
};
