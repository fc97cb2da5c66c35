/** The lock and the raw requests of the same client, behind one interface. */
import { connect } from "holdfast";
import { Ensemble } from "../../src/stores/zookeeper/client.js";
import type { Connection } from "../../src/stores/zookeeper/wire/connection.js";
import { create2, remove } from "../../src/stores/zookeeper/wire/requests.js";
import { localRuntime } from "../../src/time/runtime.js";
import type { Locker } from "../turns.js";

export interface Candidate {
  readonly name: string;
  readonly role: "holdfast" | "floor";
  open(port: number): Promise<Locker>;
}

export const RAW = "raw create + delete";
const TTL_MS = 30_000;

/** A session of the client that the store uses. */
export function ownConnection(port: number): Promise<Connection> {
  const settings = { tls: null, chroot: "", credentials: [] };
  const ensemble = new Ensemble([{ host: "127.0.0.1", port }], settings, localRuntime);
  return ensemble.connect({ key: null, timeoutMs: TTL_MS }, TTL_MS);
}

const holdfast: Candidate = {
  name: "holdfast",
  role: "holdfast",
  open: async (port) => {
    const locks = await connect(`zookeeper://127.0.0.1:${port}/bench`, { ttlMs: TTL_MS });
    return {
      acquire: async (name) => {
        const lease = await locks.mutex(name).acquire();
        return () => lease.release();
      },
      close: () => locks.close(),
    };
  },
};

const raw: Candidate = {
  name: RAW,
  role: "floor",
  open: async (port) => {
    const connection = await ownConnection(port);
    await connection.send(create2("/raw")).catch(() => {});
    return {
      acquire: async (name) => {
        const prefix = `/raw/${encodeURIComponent(name)}-`;
        const { path } = await connection.send(create2(prefix, { mode: "ephemeral_sequential" }));
        return () => connection.send(remove(path));
      },
      close: () => connection.endSession(),
    };
  },
};

export const candidates: readonly Candidate[] = [holdfast, raw];

export function candidate(name: string): Candidate {
  const found = candidates.find((one) => one.name === name);
  if (!found) throw new Error(`no candidate ${name}`);
  return found;
}
