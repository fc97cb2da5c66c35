import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { type FaultProxy, startProxy } from "../../test/faults/proxy.js";
import { type PostgresServer, startPostgres } from "../../test/servers/postgres.js";
import { promote, startStandby } from "../../test/servers/postgres-standby.js";
import { closeAll } from "../../test/servers/server-process.js";
import { ServerClocks } from "./server-clocks.js";
import type { Service } from "./service-deployment.js";
import { postgresWire, type Wire } from "./wire.js";

interface Wants {
  readonly hasStandby: boolean;
  readonly isEmptied: boolean;
}

interface Standby {
  readonly server: PostgresServer;
  /** Its connection to the primary. */
  readonly link: FaultProxy;
}

/** One Postgres, with or without a standby that copies it asynchronously. */
export class PostgresService implements Service {
  readonly versions: Readonly<Record<string, string>>;
  readonly wire: Wire = postgresWire;
  readonly succession = "primary dies, standby takes over";
  readonly #primary: PostgresServer;
  readonly #standby: Standby | null;
  readonly #clocks: ServerClocks;

  constructor(
    primary: PostgresServer,
    standby: Standby | null,
    clocks: ServerClocks,
    version: string,
  ) {
    this.#primary = primary;
    this.#standby = standby;
    this.#clocks = clocks;
    this.versions = { postgres: version };
  }

  /** `isEmptied`: it will lose its data. */
  static async start({ hasStandby, isEmptied }: Wants): Promise<PostgresService> {
    const clocks = new ServerClocks();
    const primary = await startPostgres({ env: clocks.env(0) });
    const [row] = await primary.ask("show server_version");
    const [version = "unknown"] = String(row?.server_version).split(" ");
    // To make an empty cluster takes longer than a lease: it is made before the trial.
    if (isEmptied) await primary.initialise(emptyFolder(primary));
    const standby = hasStandby ? await standbyOf(primary) : null;
    return new PostgresService(primary, standby, clocks, version);
  }

  get ports(): readonly number[] {
    return [this.#primary.port];
  }

  async restartEmpty(): Promise<void> {
    await this.#primary.kill();
    await rm(this.#primary.dataDir, { recursive: true, force: true });
    await rename(emptyFolder(this.#primary), this.#primary.dataDir);
    await this.#primary.start();
  }

  async shiftClock(byMs: number): Promise<void> {
    await this.#clocks.shift(0, byMs, this.#primary);
  }

  cutFollowers(): void {
    this.#standby?.link.cut();
  }

  async failOver(): Promise<number> {
    if (!this.#standby) throw new Error("one server has no successor");
    const { server } = this.#standby;
    await this.#primary.kill();
    await promote(server);
    return server.port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#standby) await closeAll([this.#standby.server, this.#standby.link]);
    await this.#primary.close();
  }
}

function emptyFolder({ dir }: PostgresServer): string {
  return join(dir, "empty");
}

async function standbyOf(primary: PostgresServer): Promise<Standby> {
  const link = await startProxy({ targetPort: primary.port });
  return { link, server: await startStandby(primary, { through: link.port }) };
}
