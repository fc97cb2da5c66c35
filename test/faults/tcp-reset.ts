import type { Socket } from "node:net";

/**
 * Closes the socket with RST. `socket.resetAndDestroy()` ends the stream first, so the other side
 * may see an orderly end before the reset; this sets only its flag. A socket that has sent its end
 * cannot be reset.
 */
export function tcpReset(socket: Socket): void {
  if (!socket.destroyed && !socket.connecting && !socket.writableEnded) {
    Object.assign(socket, { resetAndClosing: true });
  }
  socket.destroy();
}
