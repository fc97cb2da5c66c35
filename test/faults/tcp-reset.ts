import type { Socket } from "node:net";

/**
 * Closes with RST. `socket.resetAndDestroy()` ends the stream first, so that the other side may see
 * an orderly end before the reset; the flag is what it sets in between. A socket that has sent its
 * end cannot be reset any more.
 */
export function tcpReset(socket: Socket): void {
  if (!socket.destroyed && !socket.connecting && !socket.writableEnded) {
    Object.assign(socket, { resetAndClosing: true });
  }
  socket.destroy();
}
