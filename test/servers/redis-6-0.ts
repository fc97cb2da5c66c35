import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { onFreePorts } from "./free-port.js";
import type { Launch } from "./owned-process.js";
import { RedisServer } from "./redis.js";

const script = fileURLToPath(new URL("../../scripts/newer-servers.mjs", import.meta.url));

/** The newest Redis that is too old for the stores. */
class Redis60 extends RedisServer {
  readonly #programs: string;

  constructor(port: number, programs: string) {
    super(port);
    this.#programs = programs;
  }

  protected override launch(): Launch {
    const { args, ...launch } = super.launch();
    // Redis 6.0 allows DEBUG without this option and does not know it.
    const at = args.indexOf("--enable-debug-command");
    const known = args.filter((_, place) => place !== at && place !== at + 1);
    return { ...launch, command: `${this.#programs}/redis-server`, args: known };
  }
}

/** The folder of its programs. Fetches them if necessary; rejects if they are not available. */
export async function fetchRedis60(): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [script, "redis-6.0"]);
  return /^redis-6\.0: Redis 6\.0\.\d+ in (.+)$/m.exec(stdout)?.[1] ?? "";
}

export function startRedis60(programs: string): Promise<RedisServer> {
  return onFreePorts(1, async ([port = 0]) => {
    const server = new Redis60(port, programs);
    try {
      await server.start();
      return server;
    } catch (error) {
      await server.close();
      throw error;
    }
  });
}
