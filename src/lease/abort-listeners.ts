/** Whoever wants to know that a signal aborted. */
export interface AbortListener {
  onAbort(): void;
}

/**
 * All who listen to one signal, behind one listener: a signal may end many waits, as one of a whole
 * program does, and Node takes more than ten listeners for a leak.
 */
class Audience {
  readonly listeners: Set<AbortListener> = new Set();

  handleEvent(): void {
    // Whoever leaves while another is told is not told any more.
    for (const listener of this.listeners) {
      this.listeners.delete(listener);
      listener.onAbort();
    }
  }
}

const audiences = new WeakMap<AbortSignal, Audience>();

/** Tells `listener` once, when the signal aborts; it must not have aborted yet. */
export function listen(signal: AbortSignal, listener: AbortListener): void {
  let audience = audiences.get(signal);
  if (!audience) {
    audience = new Audience();
    audiences.set(signal, audience);
  }
  audience.listeners.add(listener);
  if (audience.listeners.size === 1) signal.addEventListener("abort", audience, { once: true });
}

export function unlisten(signal: AbortSignal, listener: AbortListener): void {
  const audience = audiences.get(signal);
  if (!audience?.listeners.delete(listener)) return;
  if (audience.listeners.size === 0) signal.removeEventListener("abort", audience);
}

/** The outcome of `asked`, or the signal's reason when that comes first; `onLate` gets the rest. */
export function unlessAborted<T>(
  asked: Promise<T>,
  signal: AbortSignal,
  onLate: (outcome: T) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const listener: AbortListener = {
      onAbort() {
        reject(signal.reason);
        asked.then(onLate, () => {});
      },
    };
    listen(signal, listener);
    asked.finally(() => unlisten(signal, listener)).then(resolve, reject);
  });
}
