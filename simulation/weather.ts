import type { Chance } from "./chance.js";

/** The faults of the network: delays, losses and copies of messages. */
export interface Weather {
  /** How long a message takes, usually. */
  readonly delayMs: readonly [number, number];
  /** How often a message takes longer, and how long then. */
  readonly slow: number;
  readonly slowMs: readonly [number, number];
  readonly loss: number;
  /** How often a push takes longer: pushes have a connection of their own. */
  readonly slowPush: number;
  /** How often a request arrives twice on a good connection, which no client can notice. */
  readonly copies: number;
  /** How late a copy is that was left in the buffers of a broken connection. */
  readonly lateMs: readonly [number, number];
  /** Requests and replies keep their order, as on one connection. */
  readonly ordered: boolean;
}

export const FAIR: Weather = {
  delayMs: [0.2, 2],
  slow: 0,
  slowMs: [1, 1],
  loss: 0,
  slowPush: 0,
  copies: 0,
  lateMs: [5, 8_000],
  ordered: true,
};

export function delayOf(weather: Weather, chance: Chance, slow: number = weather.slow): number {
  const [low, high] = chance.isLucky(slow) ? weather.slowMs : weather.delayMs;
  return chance.spread(low, high);
}

/** The longest that a message may be under way. */
export function longestDelayMs({ delayMs, slow, slowPush, slowMs }: Weather): number {
  return slow + slowPush > 0 ? Math.max(delayMs[1], slowMs[1]) : delayMs[1];
}
