import { createRequire } from "node:module";

/** A resource that `using` of bluebird gives back; opaque to all others. */
export interface Disposer<Resource> {
  /** Never there: it tells the compiler what kind of resource it is. */
  readonly resourceOf?: Resource;
}

interface Bluebird {
  resolve<T>(value: Promise<T>): {
    disposer(giveBack: (resource: T) => Promise<unknown>): Disposer<T>;
  };
}

/** Throws unless `bluebird` is installed: only its `using` takes a disposer. */
export function disposerOf<T>(
  resource: () => Promise<T>,
  giveBack: (resource: T) => Promise<unknown>,
): Disposer<T> {
  return bluebird().resolve(resource()).disposer(giveBack);
}

function bluebird(): Bluebird {
  try {
    return createRequire(import.meta.url)("bluebird") as Bluebird;
  } catch (cause) {
    const advice =
      "disposer() needs the package bluebird, whose using() takes what it gives: " +
      "npm install bluebird, or lock() and unlock() in a try and finally.";
    throw new Error(advice, { cause });
  }
}
