import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onFreePorts } from "./free-port.js";
import type { Launch } from "./owned-process.js";
import { asUser, giveToUser } from "./postgres.js";
import { ServerProcess, startOrClose } from "./server-process.js";

export interface PoolerOptions {
  readonly targetPort: number;
  /** For how long a client keeps a connection of the pool. */
  readonly mode: "transaction" | "session";
}

/** A pgbouncer in front of a Postgres server. */
export class Pgbouncer extends ServerProcess {
  readonly port: number;
  readonly #options: PoolerOptions;

  constructor(port: number, options: PoolerOptions) {
    super("pgbouncer");
    this.port = port;
    this.#options = options;
    giveToUser(this.dir);
  }

  get url(): string {
    return `postgres://postgres@127.0.0.1:${this.port}/postgres`;
  }

  protected launch(): Launch {
    const { targetPort, mode } = this.#options;
    const settings = {
      listen_addr: "127.0.0.1",
      listen_port: this.port,
      unix_socket_dir: "",
      auth_type: "any",
      pool_mode: mode,
      pidfile: join(this.dir, "pid"),
      // After a failed login the next one comes at once.
      server_login_retry: 0,
    };
    const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
    const target = `* = host=127.0.0.1 port=${targetPort} user=postgres`;
    const config = join(this.dir, "config");
    writeFileSync(config, ["[databases]", target, "[pgbouncer]", ...lines, ""].join("\n"));
    return asUser("pgbouncer", [config]);
  }

  protected async isReady(): Promise<boolean> {
    return readFileSync(join(this.dir, "pid"), "utf8").trim() === `${this.pid}`;
  }
}

export async function startPgbouncer(options: PoolerOptions): Promise<Pgbouncer> {
  return await onFreePorts(1, ([port = 0]) => startOrClose(new Pgbouncer(port, options)));
}
