/** All packages that lock in one etcd, behind one interface. */
import { Etcd3, EtcdLockFailedError } from "etcd3";
import { connect, type Holdfast } from "holdfast";
import type { Sending } from "../../src/stores/etcd/calls.js";
import { Http2Client } from "../../src/stores/etcd/client.js";
import { DELETE, GRANT, TXN } from "../../src/stores/etcd/wire/messages.js";
import { networkRuntime } from "../../src/time/runtime.js";
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

/** A call of the raw client counts no sendings. */
export const SENDING: Sending = { start: (send) => void send() };

/** The client that Holdfast itself uses. */
export function rawClient(url: string): Http2Client {
  return new Http2Client({ members: [new URL(url).host], tls: null, user: null }, networkRuntime());
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
    const client = rawClient(url);
    const lease = 7587848390000000001n;
    // The lease exists if another contestant has requested it.
    await client.call(GRANT, { ttl: 3_600n, id: lease }, SENDING).catch(() => {});
    const value = Buffer.alloc(0);
    return {
      acquire: async (lock) => {
        const key = Buffer.from(`${lock}/raw`);
        const request = {
          compare: [
            { result: "Equal" as const, target: "Create" as const, key, createRevision: 0n },
          ],
          success: [{ requestPut: { key, value, lease } }],
        };
        const { succeeded } = await client.call(TXN, request, SENDING);
        if (!succeeded) throw new Error("the raw pair met contention");
        return () => client.call(DELETE, { key }, SENDING);
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
