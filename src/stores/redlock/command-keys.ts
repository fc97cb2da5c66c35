/** The keys of a lock by plain commands: each change compares what is there with what was read. */
import { list } from "../../events/foreign-data.js";
import type { Driver } from "../redis-client/driver.js";
import { NativeKeys } from "../redis-client/plain-keys.js";
import type { Keys } from "./layout.js";

const SECOND_US = 1_000_000;
/** The digits of a ballot. */
const BALLOT_SIZE = 16;
/** A ballot is kept until its absence says as much. */
export const BALLOT_KEPT_MS = 87_460_000;
/** The record of a mark is kept for longer than the mark. */
const DAY_MS = 86_400_000;
/** After this many failed comparisons in a row, another client is faster every time. */
export const MAX_TRIES = 10;

/** The text of a ballot key: the stored ballot, and the record behind it. */
export interface Ballot {
  /** Null where the key is absent. */
  readonly raw: string | null;
  readonly stored: number;
  readonly kind: string;
  /** Begins with the value that the record is about. */
  readonly rest: string;
}

/** The answer of the script for a key of another program. */
export type ForeignAnswer = readonly ["X", string, string];

export class CommandKeys {
  /** The key of the published algorithm; the ballot changes by the same comparison. */
  readonly plain: NativeKeys;
  readonly #driver: Driver;

  constructor(driver: Driver) {
    this.#driver = driver;
    this.plain = new NativeKeys((key, command, args) => this.text(key, command, args));
  }

  /**
   * Replaces the text of the ballot by comparison. False where it was not replaced. `keepMs` is the
   * life time of the mark that the text is about, where it is a new one.
   */
  async rewrite(
    keys: Keys,
    change: (known: Ballot, nowUs: number) => string | null | Promise<string | null>,
    keepMs = 0,
  ): Promise<boolean | ForeignAnswer> {
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const [known, nowUs] = await this.known(keys);
      if (isForeign(known)) return known;
      const text = await change(known, nowUs);
      if (text === null) return false;
      if (text === known.raw) return true;
      let leastMs = keepMs > 0 ? keepMs + DAY_MS : 0;
      // The record of an earlier mark keeps its expiry. The key does not tell it: the key gets the
      // mark after the record.
      const isKept = keepMs === 0 && known.kind === "D" && isOfMark(text);
      if (isKept) leastMs = await this.#leftMs(keys[2]);
      const ballotUntilMs = Math.ceil(Math.max(nowUs, known.stored) / 1000) + BALLOT_KEPT_MS;
      const untilMs = Math.max(ballotUntilMs, Math.ceil(nowUs / 1000) + leastMs);
      if (await this.replace(keys[2], known.raw, text, untilMs)) return true;
    }
    return false;
  }

  replace(key: string, raw: string | null, text: string, untilMs: number): Promise<boolean> {
    return this.plain.replace(key, raw, text, ["PXAT", `${untilMs}`]);
  }

  /** The ballot, and the time of the server when it was read. */
  async known([, lock, key]: Keys): Promise<[Ballot | ForeignAnswer, number]> {
    const [raw, nowUs] = await Promise.all([this.text(key, "get", [key]), this.nowUs(lock)]);
    return [isForeign(raw) ? raw : ballotOf(key, raw, nowUs), nowUs];
  }

  /**
   * The same, and whether the owner had the key while the ballot had this text. A ballot that holds
   * no text counts as absent here; `replace` does not replace it.
   */
  async knownUnder(keys: Keys, owner: string): Promise<[Ballot | ForeignAnswer, number, boolean]> {
    const [, lock, key] = keys;
    const [{ value, raw }, nowUs] = await Promise.all([this.both(keys), this.nowUs(lock)]);
    return [ballotOf(key, raw, nowUs), nowUs, value === owner];
  }

  /** Both texts of one moment. Null also for a key that holds no text. */
  async both([, lock, key]: Keys): Promise<Record<"value" | "raw", string | null>> {
    const [value, raw] = list(await this.#driver.send(lock, "mget", [lock, key])).map((text) =>
      text === null || text === undefined ? null : String(text),
    );
    return { value: value ?? null, raw: raw ?? null };
  }

  async nowUs(key: string): Promise<number> {
    const [seconds, micros] = list(await this.#driver.send(key, "time", []));
    return Number(seconds) * SECOND_US + Number(micros);
  }

  /** Negative where the key has no expiry, or is absent. */
  async #leftMs(key: string): Promise<number> {
    return Number(await this.#driver.send(key, "pttl", [key]));
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

/** Without a ballot the clock of the server counts, less a second. */
function ballotOf(key: string, raw: string | null, nowUs: number): Ballot | ForeignAnswer {
  if (raw === null) return { raw, stored: nowUs - SECOND_US, kind: "", rest: "" };
  const [, stored, kind = "", rest = ""] = /^(\d{16})(?: ([HWDRV])(?: (.*))?)?$/s.exec(raw) ?? [];
  if (stored === undefined) return ["X", key, "string"];
  return { raw, stored: Number(stored), kind, rest };
}

/** Whether the text of a ballot ends with the record of a mark. */
function isOfMark(text: string): boolean {
  return text.startsWith(" D ", BALLOT_SIZE);
}

/** Whether the record is about this value. */
export function isAbout({ rest }: Ballot, value: string): boolean {
  return rest.startsWith(`${value} `);
}

/** Whether the record is of another owner, which got a higher token: it held the lock later. */
export function isLaterHolder({ kind, rest }: Ballot, owner: string, token: number): boolean {
  const [value = "", first = ""] = rest.split(" ", 2);
  const isOther = value !== owner && value !== markValue(owner);
  return /[HWD]/.test(kind) && isOther && Number(first) > token;
}

/** The value of the key when the owner has left a mark. */
export function markValue(owner: string): string {
  return `done:${owner}`;
}

/** The record as the text has it behind the ballot. */
export function tailOf({ kind, rest }: Ballot): string {
  return kind && ` ${kind}${rest && ` ${rest}`}`;
}

/** A whole number as the script writes it. */
export function whole(number: number): string {
  return number.toFixed(0);
}
