/**
 * All packages that lock on one Postgres, behind one interface, with their own defaults but for
 * retries. A package is loaded when it is opened, so that a process carries only its own.
 */
import { randomUUID } from "node:crypto";
import type { Locker } from "../turns.js";

export interface Candidate {
  readonly name: string;
  readonly role: "holdfast" | "peer" | "floor";
  /** Each lock has a connection of its own: 100 at a time would exhaust the server. */
  readonly connectsPerLock?: boolean;
  open(url: string): Promise<Locker>;
}

const TTL_MS = 30_000;
/** Verrou polls. This is far more often than its default of 250 ms, in its favour. */
const RETRY_MS = 10;

export const RAW = "raw named insert + delete";

async function loadHoldfast() {
  return { ...(await import("holdfast")), ...(await import("holdfast/postgres")) };
}

function holdfast(name: string, fairness: "bounded" | "strict"): Candidate {
  return {
    name,
    role: "holdfast",
    open: async (url) => {
      const { Holdfast, postgresStore } = await loadHoldfast();
      const { default: pg } = await import("pg");
      const pool = new pg.Pool({ connectionString: url });
      const locks = new Holdfast(postgresStore({ pool }), { ttlMs: TTL_MS, fairness });
      return {
        acquire: async (lock) => {
          const lease = await locks.mutex(lock).acquire();
          return () => lease.release();
        },
        close: async () => {
          await locks.close();
          await pool.end();
        },
      };
    },
  };
}

const postgresJs: Candidate = {
  name: "holdfast on postgres.js",
  role: "holdfast",
  open: async (url) => {
    const { Holdfast, postgresStore } = await loadHoldfast();
    const { default: postgres } = await import("postgres");
    const sql = postgres(url, { onnotice: () => {} });
    const locks = new Holdfast(postgresStore({ sql }), { ttlMs: TTL_MS });
    return {
      acquire: async (lock) => {
        const lease = await locks.mutex(lock).acquire();
        return () => lease.release();
      },
      close: async () => {
        await locks.close();
        await sql.end();
      },
    };
  },
};

const verrou: Candidate = {
  name: "verrou (knex)",
  role: "peer",
  open: async (url) => {
    const { LockFactory } = await import("@verrou/core");
    const { knexStore } = await import("@verrou/core/drivers/knex");
    const { default: knex } = await import("knex");
    const connection = knex({ client: "pg", connection: url });
    const { factory } = knexStore({ connection });
    const locks = new LockFactory(factory(), { retry: { delay: RETRY_MS } });
    return {
      acquire: async (lock) => {
        const held = locks.createLock(lock, TTL_MS);
        if (!(await held.acquire())) throw new Error("verrou gave up");
        return () => held.release();
      },
      close: () => connection.destroy(),
    };
  },
};

const advisoryLock: Candidate = {
  name: "advisory-lock",
  role: "peer",
  connectsPerLock: true,
  open: async (url) => {
    // A CommonJS module: its default stands inside of the default of the import.
    const { default: exported } = await import("advisory-lock");
    const createMutex = exported.default(url);
    return {
      acquire: (lock) => createMutex(lock).lock(),
      close: async () => {},
    };
  },
};

/** The two statements that no lock in a table can do without; it does not wait. */
const raw: Candidate = {
  name: RAW,
  role: "floor",
  open: async (url) => {
    const { default: pg } = await import("pg");
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const insert = "insert into raw values ($1, $2, $3) on conflict do nothing";
    const remove = "delete from raw where name = $1 and owner = $2";
    return {
      acquire: async (lock) => {
        const owner = randomUUID();
        const values = [lock, owner, Date.now() + TTL_MS];
        const { rowCount } = await client.query({ name: "insert", text: insert, values });
        if (rowCount !== 1) throw new Error("the raw pair met contention");
        return () => client.query({ name: "remove", text: remove, values: [lock, owner] });
      },
      close: () => client.end(),
    };
  },
};

const candidates: readonly Candidate[] = [
  holdfast("holdfast", "bounded"),
  holdfast("holdfast strict", "strict"),
  postgresJs,
  verrou,
  advisoryLock,
  raw,
];

/** A quick look leaves out what differs little from another candidate. */
const ALIKE = ["holdfast strict", "holdfast on postgres.js"];

export function candidatesFor(isQuick: boolean): readonly Candidate[] {
  return candidates.filter(({ name }) => !(isQuick && ALIKE.includes(name)));
}

export function candidate(name: string): Candidate {
  const found = candidates.find((one) => one.name === name);
  if (!found) throw new Error(`no candidate ${name}`);
  return found;
}
