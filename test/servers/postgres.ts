import { execFile, execFileSync } from "node:child_process";
import { chownSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { onFreePorts } from "./free-port.js";
import type { Launch } from "./owned-process.js";
import { isAlive, isStopped, signalAll } from "./process-state.js";
import { ServerProcess, startOrClose } from "./server-process.js";
import { waitUntil } from "./wait-until.js";

const run = promisify(execFile);
/** Where Debian puts the programs of each version. */
const VERSIONS = "/usr/lib/postgresql";
/** Postgres refuses to run as root: then it runs as this user. */
const USER = "postgres";
const isRoot = process.getuid?.() === 0;

export interface PostgresOptions {
  /** Settings of the server, such as `{ synchronous_commit: "off" }`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Its data are on a disk, not in memory. */
  readonly isOnDisk?: boolean;
  /** Environment variables in addition to those of this process. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A Postgres server that trusts every connection from this machine. */
export class PostgresServer extends ServerProcess {
  readonly port: number;
  readonly #settings: Readonly<Record<string, string>>;
  readonly #env: Readonly<Record<string, string>>;

  constructor(port: number, { settings = {}, isOnDisk = false, env = {} }: PostgresOptions = {}) {
    super("postgres", isOnDisk);
    this.port = port;
    this.#settings = settings;
    this.#env = env;
    giveToUser(this.dir);
  }

  /** The folder of its data. */
  get dataDir(): string {
    return join(this.dir, "data");
  }

  get url(): string {
    return `postgres://${USER}@127.0.0.1:${this.port}/postgres`;
  }

  /** Makes an empty database cluster in a folder. Default: that of its data. */
  async initialise(folder: string = this.dataDir): Promise<void> {
    const how = ["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"];
    await this.runProgram("initdb", [...how, "--username", USER, "--pgdata", folder]);
  }

  /** Runs a program of Postgres as the user of the server, such as `pg_basebackup`. */
  async runProgram(program: string, args: readonly string[]): Promise<string> {
    const { command, args: all } = asUser(program, args);
    const { stdout } = await run(command, [...all], { cwd: this.dir });
    return stdout;
  }

  protected launch(): Launch {
    const settings = {
      // In its own folder: a server that is killed leaves its shared memory behind.
      dynamic_shared_memory_type: "mmap",
      listen_addresses: "127.0.0.1",
      port: `${this.port}`,
      unix_socket_directories: this.dir,
      // A test that fails must not wait for a checkpoint.
      max_wal_size: "4GB",
      ...this.#settings,
    };
    const options = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    // SIGINT ends the connections; SIGTERM waits for them.
    const program = asUser("postgres", ["-D", this.dataDir, ...options]);
    return { ...program, env: { ...process.env, ...this.#env }, stopSignal: "SIGINT" };
  }

  protected async isReady(): Promise<boolean> {
    const lines = readFileSync(join(this.dataDir, "postmaster.pid"), "utf8").split("\n");
    return lines[0] === `${this.pid}` && /^(ready|standby)/.test(lines[7] ?? "");
  }

  /** One statement on a connection of its own. */
  async ask(sql: string, values: readonly unknown[] = []): Promise<Record<string, unknown>[]> {
    const client = await this.client();
    try {
      return (await client.query<Record<string, unknown>>(sql, [...values])).rows;
    } finally {
      await client.end();
    }
  }

  /** The server's wall clock. */
  async clockMs(): Promise<number> {
    const [row] = await this.ask("select extract(epoch from clock_timestamp()) as seconds");
    return Number(row?.seconds) * 1_000;
  }

  /** A connection that the caller ends. */
  async client(options: pg.ClientConfig = {}): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: this.url, ...options });
    // A server that is killed ends the connection with an error that no test waits for.
    client.on("error", () => {});
    await client.connect();
    return client;
  }

  /** Stops every process of the server. Each backend leads a process group of its own. */
  override async pause(): Promise<void> {
    await super.pause();
    const children = childrenOf(this.pid);
    signalAll(children, "SIGSTOP");
    await waitUntil(() => children.every(isStopped), { what: "the backends stop", everyMs: 1 });
  }

  override resume(): void {
    signalAll(childrenOf(this.pid), "SIGCONT");
    super.resume();
  }

  /** Sends SIGKILL to every process of the server, like a crash of the machine. */
  override async kill(): Promise<void> {
    if (!this.running) return;
    // A stopped server starts no more backends.
    await super.pause();
    const children = childrenOf(this.pid);
    signalAll(children, "SIGKILL");
    await super.kill();
    // The next start fails while one of them has the shared memory.
    await waitUntil(() => !children.some(isAlive), { what: "the backends end", everyMs: 1 });
  }

  /** Ends it at once. After SIGQUIT it leaves no shared memory behind, unlike after SIGKILL. */
  override async close(): Promise<void> {
    if (this.running) {
      this.resume();
      process.kill(this.pid, "SIGQUIT");
      await this.stop();
    }
    await super.close();
  }
}

export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  return await onFreePorts(1, async ([port = 0]) => {
    const server = new PostgresServer(port, options);
    return await startOrClose(server, async () => {
      await server.initialise();
      await server.start();
    });
  });
}

/** The newest version that is installed, unless the PATH has one. */
function programPath(program: string): string {
  const folders = (process.env.PATH ?? "").split(delimiter);
  const versions = existsSync(VERSIONS) ? readdirSync(VERSIONS) : [];
  const newest = versions.sort((a, b) => Number(b) - Number(a));
  const all = [...folders, ...newest.map((version) => join(VERSIONS, version, "bin"))];
  const found = all.map((folder) => join(folder, program)).find((path) => existsSync(path));
  if (!found) throw new Error(`${program} is not installed: node scripts/servers.mjs postgres`);
  return found;
}

/** Runs a program as a user that is not root. */
export function asUser(program: string, args: readonly string[]): Launch {
  const path = programPath(program);
  if (!isRoot) return { command: path, args };
  const user = [`--reuid=${USER}`, `--regid=${USER}`, "--init-groups"];
  return { command: "setpriv", args: [...user, path, ...args] };
}

/** Lets the programs that `asUser` runs write to a folder. */
export function giveToUser(folder: string): void {
  if (isRoot) chownSync(folder, userId("-u"), userId("-g"));
}

function userId(flag: "-u" | "-g"): number {
  return Number(execFileSync("id", [flag, USER], { encoding: "utf8" }));
}

/** The processes that a process has started, as Linux tells. */
export function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
  return text.split(" ").filter(Boolean).map(Number);
}
