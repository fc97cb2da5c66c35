/** All packages that lock in one etcd with the client `etcd3`, behind one interface. */
import { Etcd3, EtcdLockFailedError } from "etcd3";
import { Holdfast } from "holdfast";
import { etcdStore } from "holdfast/etcd";
import type { Locker } from "../turns.js";

export interface Candidate {
  readonly name: string;
  readonly role: "holdfast" | "peer" | "floor";
  open(url: string, ttlMs?: number): Promise<Locker>;
}

export const RAW = "raw Txn + delete";
export const PEER = "etcd3 lock";

const TTL_MS = 30_000;
/** The lock of etcd3 does not wait, so the benchmark asks again. */
const RETRY_MS = 10;

const holdfast: Candidate = {
  name: "holdfast",
  role: "holdfast",
  open: async (url, ttlMs = TTL_MS) => {
    const client = new Etcd3({ hosts: [url] });
    const locks = new Holdfast(etcdStore({ client }), { ttlMs });
    return {
      acquire: async (name) => {
        const lease = await locks.mutex(name).acquire();
        return () => lease.release();
      },
      close: async () => {
        await locks.close();
        client.close();
      },
    };
  },
};

const etcd3: Candidate = {
  name: PEER,
  role: "peer",
  open: async (url, ttlMs = TTL_MS) => {
    const client = new Etcd3({ hosts: [url] });
    return {
      acquire: async (name) => {
        for (;;) {
          const lock = client.lock(name).ttl(ttlMs / 1000);
          try {
            await lock.acquire();
            return () => lock.release();
          } catch (error) {
            if (!(error instanceof EtcdLockFailedError)) throw error;
            await new Promise((resume) => setTimeout(resume, RETRY_MS));
          }
        }
      },
      close: async () => client.close(),
    };
  },
};

/** The two calls that no lock can do without, on one lease for all of them; it does not wait. */
const raw: Candidate = {
  name: RAW,
  role: "floor",
  open: async (url) => {
    const client = new Etcd3({ hosts: [url] });
    const { ID } = await client.leaseClient.leaseGrant({ TTL: 3_600, ID: 0 });
    const value = Buffer.alloc(0);
    return {
      acquire: async (name) => {
        const key = Buffer.from(`${name}/raw`);
        const { succeeded } = await client.kv.txn({
          compare: [{ result: "Equal", target: "Create", key, create_revision: "0" }],
          success: [{ request_put: { key, value, lease: ID } }],
        });
        if (!succeeded) throw new Error("the raw pair met contention");
        return () => client.kv.deleteRange({ key });
      },
      close: async () => client.close(),
    };
  },
};

export const candidates: readonly Candidate[] = [holdfast, raw, etcd3];

export function candidate(name: string): Candidate {
  const found = candidates.find((one) => one.name === name);
  if (!found) throw new Error(`no candidate ${name}`);
  return found;
}
