/** All packages that lock in files of one machine, behind one interface. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Holdfast } from "holdfast";
import { fileStore } from "holdfast/file";
import { lock } from "proper-lockfile";
import type { Locker } from "../turns.js";
import { openRawSqlite } from "./raw-sqlite.js";

export interface Candidate {
  readonly name: string;
  readonly role: "holdfast" | "peer" | "floor";
  open(folder: string, ttlMs?: number): Locker;
}

const TTL_MS = 30_000;
/** It polls. This is far more often than its default, in its favour. */
const RETRY_MS = 10;

const holdfast: Candidate = {
  name: "holdfast",
  role: "holdfast",
  open(folder, ttlMs = TTL_MS) {
    const locks = new Holdfast(fileStore({ path: join(folder, "locks.db") }), { ttlMs });
    return {
      acquire: async (name) => {
        const lease = await locks.mutex(name).acquire();
        return () => lease.release();
      },
      close: () => locks.close(),
    };
  },
};

const properLockfile: Candidate = {
  name: "proper-lockfile",
  role: "peer",
  open(folder, ttlMs) {
    mkdirSync(folder, { recursive: true });
    const retries = { forever: true, minTimeout: RETRY_MS, maxTimeout: RETRY_MS, factor: 1 };
    const stale = ttlMs === undefined ? {} : { stale: ttlMs };
    return {
      acquire: (name) => lock(join(folder, name), { realpath: false, retries, ...stale }),
      close: async () => {},
    };
  },
};

/** A read-modify-write transaction for each step, by the same library; it does not wait. */
const rawSqlite: Candidate = {
  name: "raw SQLite transactions",
  role: "floor",
  open: (folder) => openRawSqlite(join(folder, "raw.db")),
};

export const candidates: readonly Candidate[] = [holdfast, rawSqlite, properLockfile];

export function candidate(name: string): Candidate {
  const found = candidates.find((one) => one.name === name);
  if (!found) throw new Error(`no candidate ${name}`);
  return found;
}
