import { setTimeout as sleep } from "node:timers/promises";
import { Etcd3 } from "etcd3";
import { Holdfast } from "../../src/api/holdfast.js";
import { openEtcdStore } from "../../src/stores/etcd/index.js";
import { randomOf } from "../fixtures/seed.js";
import type { EtcdServer } from "../servers/etcd.js";
import { StoreTrial } from "../stores/trial.js";
import { etcdUrl } from "./harness.js";

const random = randomOf("etcd contention");

export class EtcdTrial extends StoreTrial {
  async open(ports: readonly number[], namespace = ""): Promise<Holdfast> {
    const store = await openEtcdStore(etcdUrl(ports, namespace));
    return this.add(new Holdfast(store, { ttlMs: 5_000 }));
  }
}

/** All keys, and the number of leases. */
export async function contents({ url }: EtcdServer): Promise<{ keys: string[]; leases: number }> {
  const client = new Etcd3({ hosts: [url] });
  try {
    const keys = Object.keys(await client.getAll().strings());
    const { leases } = await client.leaseClient.leaseLeases();
    return { keys, leases: leases.length };
  } finally {
    client.close();
  }
}

/** Checks that at most one lease is held at a time; a lost lease counts until its deadline. */
export class Contention {
  count = 0;
  turns = 0;
  last = 0n;
  readonly violations: string[] = [];

  async work(locks: Holdfast, name: string, signal?: AbortSignal): Promise<void> {
    const options = { ttlMs: 5_000, ...(signal ? { signal } : {}) };
    const lease = await locks.mutex(name).acquire(options);
    try {
      this.count += 1;
      if (this.count > 1) this.violations.push(`${this.count} at once`);
      if (lease.token <= this.last) this.violations.push(`${lease.token} after ${this.last}`);
      this.last = lease.token;
      await sleep(random() * 4);
      // A lease that was lost meanwhile no longer counts.
      if (lease.state === "held") this.turns += 1;
    } finally {
      this.count -= 1;
      await lease.release();
    }
  }
}
