import { onFreePorts } from "./free-port.js";
import { type PostgresOptions, PostgresServer } from "./postgres.js";
import { startOrClose } from "./server-process.js";
import { waitUntil } from "./wait-until.js";

export interface StandbyOptions extends PostgresOptions {
  /** The port at which it reaches the primary. Default: that of the primary. */
  readonly through?: number;
}

/** Starts a standby that copies a server, as the server writes. It accepts reads only. */
export async function startStandby(
  primary: PostgresServer,
  { through = primary.port, ...options }: StandbyOptions = {},
): Promise<PostgresServer> {
  return await onFreePorts(1, async ([port = 0]) => {
    const standby = new PostgresServer(port, options);
    return await startOrClose(standby, async () => {
      const from = ["--host", "127.0.0.1", "--port", `${through}`, "--username", "postgres"];
      const how = ["--write-recovery-conf", "--checkpoint=fast", "--no-sync"];
      await standby.runProgram("pg_basebackup", [...from, ...how, "--pgdata", standby.dataDir]);
      await standby.start();
      await untilInSync(primary);
    });
  });
}

/** Resolves when the standby has replayed all that the primary has written so far. */
export async function untilInSync(primary: PostgresServer): Promise<void> {
  const [now] = await primary.ask("select pg_current_wal_lsn()::text as lsn");
  const replayed = "select replay_lsn >= $1::pg_lsn as is_done from pg_stat_replication";
  await waitUntil(
    async () => (await primary.ask(replayed, [now?.lsn])).some(({ is_done }) => is_done === true),
    { what: "the standby has replayed all" },
  );
}

/** Makes a standby a server of its own. Resolves when it accepts writes. */
export async function promote(standby: PostgresServer): Promise<void> {
  await standby.ask("select pg_promote()");
}
