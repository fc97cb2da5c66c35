import type { Subject } from "./subject.js";

/** A process of a trial runs one subject: it loads no family that it does not need. */
const FAMILIES: readonly (() => Promise<readonly Subject[]>)[] = [
  async () => (await import("./rungs.js")).rungs,
  async () => (await import("./holdfast.js")).holdfastStores,
  async () => (await import("./peers.js")).peers,
];

export async function loadSubject(id: string): Promise<Subject> {
  for (const load of FAMILIES) {
    const found = (await load()).find((subject) => subject.id === id);
    if (found) return found;
  }
  throw new Error(`no subject ${id}`);
}
