import { list } from "../../foreign-data.js";
import type { Driver } from "../redis-client/driver.js";

const KEPT_MS = "60000";
const WAITER = /^(holdfast@.*)\/(.*)$/;
/** One call drops at most so many waiters that do not listen. */
const MOST_DROPPED = 64;
/** So many waiters are told of a mark; the others see it when they look. */
const MOST_TOLD = 255;

/**
 * The queue of the waiters of a lock by plain commands. It decides nothing, so it need not be
 * exact: waiters also look by their own clocks.
 */
export class CommandQueue {
  readonly #driver: Driver;

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  /** Adds a waiter, unless it is there, and gives the number of waiters before it. */
  async enter(waiters: string, waiter: string, since: string): Promise<number> {
    try {
      await this.#driver.send(waiters, "zadd", [waiters, "NX", since, waiter]);
      await this.#driver.send(waiters, "pexpire", [waiters, KEPT_MS]);
      return Number(await this.#driver.send(waiters, "zrank", [waiters, waiter])) || 0;
    } catch (error) {
      if (isWrongType(error)) return 0;
      throw error;
    }
  }

  async leave(waiters: string, waiter: string): Promise<void> {
    await this.#unlessForeign(waiters, "zrem", [waiters, waiter]);
  }

  async size(waiters: string): Promise<number> {
    return Number(await this.#unlessForeign(waiters, "zcard", [waiters])) || 0;
  }

  /** The waiters, each with the time when it came. */
  async all(waiters: string): Promise<unknown[]> {
    return list((await this.#range(waiters, "-1", "WITHSCORES")) ?? []).flat();
  }

  /** Wakes the first waiter that listens; the second one looks soon, if the first does not come. */
  async wakeNext(waiters: string): Promise<void> {
    for (let dropped = 0; dropped < MOST_DROPPED; dropped += 1) {
      const [first, second] = list((await this.#range(waiters, "1")) ?? []).map(String);
      // A member of another program stays as it is.
      if (first === undefined || !WAITER.test(first)) return;
      if (await this.#notify("w", first)) {
        if (second !== undefined) await this.#notify("s", second);
        return;
      }
      await this.leave(waiters, first);
    }
  }

  async wakeAll(waiters: string): Promise<void> {
    const all = list((await this.#range(waiters, `${MOST_TOLD}`)) ?? []).map(String);
    const members = all.filter((member) => WAITER.test(member));
    for (const member of members) await this.#notify("w", member);
    await this.#unlessForeign(waiters, "zrem", [waiters, "-", ...members]);
  }

  /** Tells the client that keeps a lease of its end. */
  async tellRevoked(channel: string, words: string): Promise<void> {
    if (channel.startsWith("holdfast@")) await this.#publish(channel, `x ${words}`);
  }

  #range(waiters: string, to: string, ...more: readonly string[]): Promise<unknown> {
    return this.#unlessForeign(waiters, "zrange", [waiters, "0", to, ...more]);
  }

  /** Whether the waiter may have heard it. */
  async #notify(word: string, waiter: string): Promise<boolean> {
    const [, channel, id] = WAITER.exec(waiter) ?? [];
    if (channel === undefined) return false;
    const listeners = await this.#publish(channel, `${word} ${id}`);
    // In a Cluster, PUBLISH counts only the listeners at its own server.
    return this.#driver.isCluster || Number(listeners) > 0;
  }

  #publish(channel: string, message: string): Promise<unknown> {
    return this.#driver.send("", "publish", [channel, message]);
  }

  async #unlessForeign(
    waiters: string,
    command: string,
    args: readonly string[],
  ): Promise<unknown> {
    try {
      return await this.#driver.send(waiters, command, args);
    } catch (error) {
      if (isWrongType(error)) return null;
      throw error;
    }
  }
}

function isWrongType(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("WRONGTYPE");
}
