/** How often to try, and for how long to believe. */
export interface Settings {
  /** The part of a duration by which clocks may run apart. Default 0.01. */
  readonly driftFactor: number;
  /** How many attempts follow the first; -1 for no end. Default 10. */
  readonly retryCount: number;
  /** The time between two attempts, in milliseconds. Default 200. */
  readonly retryDelay: number;
  /** At most this much, at random, is added to or taken from that time. Default 100. */
  readonly retryJitter: number;
  /** `using` extends the lock when it has no more than this time left. Default 500. */
  readonly automaticExtensionThreshold: number;
}

const DEFAULTS: Settings = Object.freeze({
  driftFactor: 0.01,
  retryCount: 10,
  retryDelay: 200,
  retryJitter: 100,
  automaticExtensionThreshold: 500,
});

/** `given` over `base`; values that are no numbers do not count. */
export function settingsOver(given: Partial<Settings> = {}, base: Settings = DEFAULTS): Settings {
  const known = Object.keys(DEFAULTS) as (keyof Settings)[];
  const entries = known.map((name) => {
    return [name, typeof given[name] === "number" ? given[name] : base[name]];
  });
  return Object.fromEntries(entries) as unknown as Settings;
}

/** Throws unless the duration is a whole number of milliseconds. */
export function checkDuration(duration: number): void {
  if (Math.floor(duration) !== duration) {
    throw new Error("Duration must be an integer value in milliseconds.");
  }
}
