/** An exclusive holder is alone; shared holders may hold together. */
export type Mode = "exclusive" | "shared";

/**
 * The mode, weight and limit that an acquisition asks for. A mutex is exclusive; readers and
 * semaphores are shared.
 */
export interface Request {
  /** Whether it holds alone or together with others. */
  readonly mode: Mode;
  /** How many permits; 1 where there is no limit. */
  readonly weight: number;
  /** The most permits that all holders may have together, as this request knows it. */
  readonly limit: number;
}

/** The limit of a request that has none. */
export const NO_LIMIT: number = Number.MAX_SAFE_INTEGER;

/** A set of holders in sum: all that `fits` has to know about them. */
export interface Occupancy {
  /** How many holders there are. */
  readonly count: number;
  /** Whether one of them is exclusive: then it is alone. */
  readonly exclusive: boolean;
  /** The sum of their weights. */
  readonly weight: number;
  /** The least limit of all holders: during a deploy they may differ. */
  readonly limit: number;
}

export const VACANT: Occupancy = { count: 0, exclusive: false, weight: 0, limit: NO_LIMIT };

/**
 * Whether a request may join the holders: one exclusive alone, or all shared with the sum of
 * weights within the least of all their limits, the newcomer's and the holders'.
 */
export function fits(held: Occupancy, request: Request): boolean {
  if (held.count === 0) return request.weight <= request.limit;
  // rule: exclusive-holds-alone
  if (held.exclusive || request.mode === "exclusive") return false;
  // rule: least-limit-counts
  return held.weight + request.weight <= Math.min(held.limit, request.limit);
}

/** The holders in sum after `request` joined them. */
export function joined(held: Occupancy, request: Request): Occupancy {
  return {
    count: held.count + 1,
    exclusive: held.exclusive || request.mode === "exclusive",
    weight: held.weight + request.weight,
    limit: Math.min(held.limit, request.limit),
  };
}
