/** A client that reports changes of its connection by events. */
export interface Emitter {
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
}

const counts = new WeakMap<Emitter, { changes: number; failure: unknown }>();

/**
 * Counts how often the connection of a client changed. All stores of a client share one set of
 * listeners: clients warn about more than ten.
 */
export function countChanges(
  client: Emitter,
  watch: (onChange: (event?: unknown) => void) => void,
): () => number {
  let count = counts.get(client);
  if (!count) {
    const fresh = { changes: 0, failure: undefined as unknown };
    counts.set(client, fresh);
    watch((event) => {
      fresh.changes += 1;
      if (event instanceof Error) fresh.failure = event;
    });
    count = fresh;
  }
  const counted = count;
  return () => counted.changes;
}

/** The last failure that the client reported by one of the counted events. */
export function lastFailure(client: Emitter): unknown {
  return counts.get(client)?.failure;
}
