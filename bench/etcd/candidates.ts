/** All packages that lock in one etcd, behind one interface. */
import { Etcd3, EtcdLockFailedError } from "etcd3";
import { connect, Holdfast } from "holdfast";
import { type EtcdClient, etcdStore } from "holdfast/etcd";
import { openEtcdClient } from "../../src/stores/etcd/etcd-url.js";
import type { Locker } from "../turns.js";

export interface Candidate {
  readonly name: string;
  readonly role: "holdfast" | "peer" | "floor";
  /** The name of its own floor, where that is not `RAW`. */
  readonly floor?: string;
  open(url: string, ttlMs?: number): Promise<Locker>;
}

export const RAW = "raw Txn + delete";
export const RAW_ON_ETCD3 = "raw Txn + delete on etcd3";
export const ON_ETCD3 = "holdfast on etcd3";
export const PEER = "etcd3 lock";

const TTL_MS = 30_000;
/** The lock of etcd3 does not wait, so the benchmark asks again. */
const RETRY_MS = 10;

/** The client of a URL. */
export function ownClient(url: string): ReturnType<typeof openEtcdClient> {
  return openEtcdClient(new URL(url.replace("http:", "etcd:")));
}

function lockerOf(locks: Holdfast, closeClient: () => void): Locker {
  return {
    acquire: async (name) => {
      const lease = await locks.mutex(name).acquire();
      return () => lease.release();
    },
    close: async () => {
      await locks.close();
      closeClient();
    },
  };
}

const holdfast: Candidate = {
  name: "holdfast",
  role: "holdfast",
  open: async (url, ttlMs = TTL_MS) =>
    lockerOf(await connect(url.replace("http:", "etcd:"), { ttlMs }), () => {}),
};

/** With a client that a program passes in. */
const onEtcd3: Candidate = {
  name: ON_ETCD3,
  role: "holdfast",
  floor: RAW_ON_ETCD3,
  open: async (url, ttlMs = TTL_MS) => {
    const client = new Etcd3({ hosts: [url] });
    return lockerOf(new Holdfast(etcdStore({ client }), { ttlMs }), () => client.close());
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
function rawOf(
  name: string,
  openClient: (url: string) => Promise<EtcdClient & { close(): void }>,
): Candidate {
  return {
    name,
    role: "floor",
    floor: name,
    open: async (url) => {
      const client = await openClient(url);
      const lease = "7587848390000000001";
      // The lease is there if another contestant has asked for it.
      await client.leaseClient.leaseGrant({ TTL: 3_600, ID: lease }).catch(() => {});
      const value = Buffer.alloc(0);
      return {
        acquire: async (lock) => {
          const key = Buffer.from(`${lock}/raw`);
          const { succeeded } = await client.kv.txn({
            compare: [{ result: "Equal", target: "Create", key, create_revision: "0" }],
            success: [{ request_put: { key, value, lease } }],
          });
          if (!succeeded) throw new Error("the raw pair met contention");
          return () => client.kv.deleteRange({ key });
        },
        close: async () => client.close(),
      };
    },
  };
}

const raw: Candidate = rawOf(RAW, ownClient);
const rawOnEtcd3: Candidate = rawOf(
  RAW_ON_ETCD3,
  async (url) => new Etcd3({ hosts: [url] }) as unknown as EtcdClient & { close(): void },
);

/** Both ways to pass a client, each beside its floor. */
export const onBothClients: readonly Candidate[] = [holdfast, raw, onEtcd3, rawOnEtcd3, etcd3];

export const candidates: readonly Candidate[] = [holdfast, raw, etcd3];

export function candidate(name: string): Candidate {
  const found = candidates.find((one) => one.name === name);
  if (!found) throw new Error(`no candidate ${name}`);
  return found;
}
