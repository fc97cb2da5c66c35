/** A part of this process that is told when a signal aborts. */
export interface AbortListener {
  onAbort(): void;
}

/**
 * All listeners of one signal, behind one listener of Node: the signal of a whole program may end
 * many waits, and Node takes more than ten listeners for a leak.
 */
class Audience {
  readonly listeners: Set<AbortListener> = new Set();

  handleEvent(): void {
    // A listener that is removed while another one is called is not called any more.
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
