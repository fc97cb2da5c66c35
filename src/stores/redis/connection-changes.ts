/** Anything that tells about its connection by events. */
export interface Emitter {
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
}

const counts = new WeakMap<Emitter, { changes: number }>();

/**
 * Counts how often a client's connection changed. One set of listeners per client, however many
 * stores use it: clients warn about more than ten.
 */
export function countChanges(client: Emitter, watch: (onChange: () => void) => void): () => number {
  let count = counts.get(client);
  if (!count) {
    const fresh = { changes: 0 };
    counts.set(client, fresh);
    watch(() => {
      fresh.changes += 1;
    });
    count = fresh;
  }
  const counted = count;
  return () => counted.changes;
}
