/// <reference lib="esnext.disposable" preserve="true" />

/** A subscription to the events of all locks of this process, until it is stopped. */
export interface Subscription extends Disposable {
  /** Ends the subscription. Calling it again does nothing. */
  stop(): void;
}

/** Runs `stop` once. */
export function subscription(stop: () => void): Subscription {
  let isOver = false;
  const end = (): void => {
    if (isOver) return;
    isOver = true;
    stop();
  };
  return { stop: end, [Symbol.dispose]: end };
}
