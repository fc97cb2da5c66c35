/** The keys of a lock by plain commands: each change compares what is there with what was read. */
import { list } from "../../foreign-data.js";
import type { Driver } from "../redis-client/driver.js";
import type { CommandQueue } from "./command-queue.js";
import type { Keys } from "./layout.js";

/** A ballot is kept until its absence says as much. */
export const BALLOT_KEPT_MS = 87_460_000;
/** After so many comparisons that failed in a row, another client is faster every time. */
export const MOST_TRIES = 10;
const SECOND_US = 1_000_000;
/** A key that expires at this time is deleted at once. */
const PAST_MS = "1";

/** The text of a ballot key: the stored ballot, and the record behind it. */
export interface Ballot {
  /** Null where the key is absent. */
  readonly raw: string | null;
  readonly stored: number;
  readonly kind: string;
  readonly rest: string;
}

/** The answer of the script for a key of another program. */
export type ForeignAnswer = readonly ["X", string, string];

export class CommandKeys {
  readonly #driver: Driver;
  readonly #queue: CommandQueue;

  constructor(driver: Driver, queue: CommandQueue) {
    this.#driver = driver;
    this.#queue = queue;
  }

  /** Replaces the text of the ballot by comparison. False where it stays, or is not ours. */
  async rewrite(
    keys: Keys,
    change: (known: Ballot, queued: number, nowUs: number) => string | null,
  ): Promise<boolean> {
    const [waiters, lock] = keys;
    for (let tries = 0; tries < MOST_TRIES; tries += 1) {
      const [known, nowUs, queued] = await Promise.all([
        this.ballot(keys),
        this.nowUs(lock),
        this.#queue.size(waiters),
      ]);
      if (isForeign(known)) return false;
      const text = change(known, queued, nowUs);
      if (text === null) return false;
      if (text === known.raw) return true;
      const untilMs = Math.ceil(Math.max(nowUs, known.stored) / 1000) + BALLOT_KEPT_MS;
      if (await this.replace(keys, known.raw, text, untilMs)) return true;
    }
    return false;
  }

  async replace(
    [, , key]: Keys,
    raw: string | null,
    text: string,
    untilMs: number,
  ): Promise<boolean> {
    const condition = raw === null ? ["NX"] : ["IFEQ", raw];
    return (await this.text(key, "set", [key, text, ...condition, "PXAT", `${untilMs}`])) === "OK";
  }

  /** Deletes the lock if the owner has it. */
  async delete(lock: string, owner: string): Promise<boolean> {
    return (await this.text(lock, "set", [lock, owner, "IFEQ", owner, "PXAT", PAST_MS])) === "OK";
  }

  async ballot([, , key]: Keys): Promise<Ballot | ForeignAnswer> {
    const raw = await this.text(key, "get", [key]);
    if (isForeign(raw)) return raw;
    if (raw === null) return { raw, stored: 0, kind: "", rest: "" };
    const [, stored, kind = "", rest = ""] = /^(\d{16})(?: ([HWDRV])(?: (.*))?)?$/s.exec(raw) ?? [];
    if (stored === undefined) return ["X", key, "string"];
    return { raw, stored: Number(stored), kind, rest };
  }

  async nowUs(key: string): Promise<number> {
    const [seconds, micros] = list(await this.#driver.send(key, "time", []));
    return Number(seconds) * SECOND_US + Number(micros);
  }

  /** The answer as a text; null where it is empty; the answer of the script for a foreign key. */
  async text(
    key: string,
    command: string,
    args: readonly string[],
  ): Promise<string | null | ForeignAnswer> {
    try {
      const answer = await this.#driver.send(key, command, args);
      return answer === null || answer === undefined ? null : String(answer);
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith("WRONGTYPE"))) throw error;
      return ["X", key, String(await this.#driver.send(key, "type", [key]))];
    }
  }
}

export function isForeign(answer: unknown): answer is ForeignAnswer {
  return Array.isArray(answer) && answer[0] === "X";
}

/** The rest of the text, which also says whether there are waiters. */
export function tailOf({ kind, rest }: Ballot, queued: number): string {
  const known = queued > 0 && (kind === "H" || kind === "") ? "W" : kind;
  return known === "" ? "" : ` ${known}${rest === "" ? "" : ` ${rest}`}`;
}

/** A whole number as the script writes it. */
export function whole(number: number): string {
  return number.toFixed(0);
}
