import { once } from "node:events";
import { createServer } from "node:net";

// Below the range from which the kernel takes the ports of outgoing connections: else a client of
// some test could sit on the port of a server that is being restarted.
const lowest = 10_240;
const highest = 32_767;

const handedOut = new Set<number>();

/** A port of 127.0.0.1 that nobody listens on, and that this process gives out only once. */
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
 * Starts something on free ports; when another process took one of them meanwhile, starts it again
 * on others. `start` must reject with the server's own words ("address already in use").
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
