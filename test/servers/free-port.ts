import { once } from "node:events";
import { createServer } from "node:net";

// Below the range of ports for outgoing connections: otherwise a client of a test could take the
// port of a server that is being restarted.
const lowest = 10_240;
const highest = 32_767;

const handedOut = new Set<number>();

/** A free port of 127.0.0.1, which this process returns only once. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = lowest + Math.floor(Math.random() * (highest - lowest + 1));
    if (!handedOut.has(port) && (await isFree(port))) {
      handedOut.add(port);
      return port;
    }
  }
}

async function freePorts(count: number): Promise<readonly number[]> {
  const ports: number[] = [];
  while (ports.length < count) ports.push(await freePort());
  return ports;
}

/**
 * Calls `start` with free ports. When another process has taken one of them meanwhile, calls it
 * again with other ports. `start` must reject with the server's message ("address already in use").
 */
export async function onFreePorts<T>(
  count: number,
  start: (ports: readonly number[]) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(await freePorts(count));
    } catch (error) {
      if (attempt === 5 || !/address already in use/i.test(String(error))) throw error;
    }
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}
