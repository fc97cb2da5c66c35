import { setTimeout as sleep } from "node:timers/promises";
import { Etcd3 } from "etcd3";
import { Holdfast } from "../../src/holdfast.js";
import { openEtcdStore } from "../../src/stores/etcd/index.js";
import type { EtcdServer } from "../servers/etcd.js";
import { etcdUrl } from "./etcd-harness.js";

/** Opens clients, and closes all of them. */
export class EtcdTrial {
  readonly #opened: Holdfast[] = [];

  async open(ports: readonly number[], namespace = ""): Promise<Holdfast> {
    const locks = new Holdfast(await openEtcdStore(etcdUrl(ports, namespace)), { ttlMs: 5_000 });
    this.closeLater(locks);
    return locks;
  }

  closeLater(locks: Holdfast): void {
    this.#opened.push(locks);
  }

  async close(): Promise<void> {
    await Promise.all(this.#opened.splice(0).map((locks) => locks.close()));
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
      await sleep(Math.random() * 4);
      // A lease that was lost meanwhile no longer counts.
      if (lease.state === "held") this.turns += 1;
    } finally {
      this.count -= 1;
      await lease.release();
    }
  }
}
