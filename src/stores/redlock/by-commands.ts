/**
 * The verbs of a lone server by plain commands, for users that may not run scripts. It needs
 * `SET … IFEQ`: Redis 8.4, Valkey 8.1 or newer. The answers are those of the script.
 *
 * Why it is safe: only `SET … NX` takes the key, and only `SET … IFEQ` with the value of the owner
 * prolongs or deletes it. So no client changes the key of another owner, whenever a command
 * arrives. An owner whose key was deleted never takes it again. A deadline counts from before `SET`
 * was sent, as with the script.
 *
 * Why tokens rise: an owner writes its ballot after it took the key, by a comparison with the
 * ballot that it read, and above it. An answer that comes after the deadline does not count. So a
 * ballot that counts was written while its owner had the key, and every later owner reads it, or a
 * higher one, after it took the key.
 *
 * Why a renewal never shortens a lease: each is as long as the longest one of its lease, so a late
 * copy of an earlier one ends later than all that its owner believed when it sent the copy.
 *
 * The script does more: it compares ballots when the key is taken. Without it, a late copy of
 * `SET … NX` may leave a key that no process holds, until the key expires. A resumption, and a
 * delay after a start, need a decision about two things at once, and are refused.
 */
import { StoreError } from "../../errors.js";
import type { Driver } from "../redis-client/driver.js";
import { readTerms } from "./codec.js";
import {
  BALLOT_KEPT_MS,
  type Ballot,
  CommandKeys,
  isForeign,
  MOST_TRIES,
  tailOf,
  whole,
} from "./command-keys.js";
import { CommandQueue } from "./command-queue.js";
import type { Keys } from "./layout.js";

const SECOND_US = 1_000_000;
const YEAR_US = 31_536_000_000_000;
const RECORD_KEPT_MS = 172_800_000;

export class ByCommands {
  readonly #driver: Driver;
  readonly #queue: CommandQueue;
  readonly #keys: CommandKeys;
  /** By owner, the longest lease that was asked for. */
  readonly #longestMs = new Map<string, number>();
  /** By owner, its vote under way: a release comes behind it. */
  readonly #votes = new Map<string, Promise<unknown>>();

  constructor(driver: Driver) {
    this.#driver = driver;
    this.#queue = new CommandQueue(driver);
    this.#keys = new CommandKeys(driver, this.#queue);
  }

  /**
   * Whether the server knows `SET … IFEQ`; rejects where that is not certain. Changes nothing: no
   * ballot has this text.
   */
  static async isPossible(driver: Driver, ballot: string): Promise<boolean> {
    try {
      await driver.send(ballot, "set", [ballot, "?", "IFEQ", "?"]);
      return true;
    } catch (error) {
      if (/syntax error/i.test(error instanceof Error ? error.message : "")) return false;
      throw error;
    }
  }

  /** Runs one verb; the answer has the form of the script's. */
  run(given: readonly string[], [verb = "", ...args]: readonly string[]): Promise<unknown> {
    const keys = given as Keys;
    switch (verb) {
      case "vote":
        return this.#voteFor(keys, args);
      case "renew":
        return this.#renewAll(given, args);
      case "release":
        return this.#release(keys, args);
      case "wait":
        return this.#wait(keys, args);
      case "leave":
        return this.#leave(keys, args);
      case "revoke":
        return this.#revoke(keys, args);
      case "look":
        return this.#look(keys);
      case "survey":
        return this.#survey();
      default:
        return Promise.reject(needsScripts(`A call of ${verb}`));
    }
  }

  #voteFor(keys: Keys, args: readonly string[]): Promise<unknown> {
    const [, , owner = ""] = args;
    const asked = this.#vote(keys, args).finally(() => this.#votes.delete(owner));
    this.#votes.set(owner, asked);
    return asked;
  }

  async #vote(keys: Keys, args: readonly string[]): Promise<unknown> {
    const [waiters, lock] = keys;
    const [packed = "", record = "", owner = "", since = record.slice(0, 16)] = args;
    const { keptUntilMs, waiterId, delayMs, ttlMs } = readTerms(packed);
    if (delayMs > 0) throw needsScripts('bootstrap: "wait"');
    const token = Number(record.slice(0, 16));
    const [, channel = ""] = /^\d+ H \S+ \d+ \d+ \d+ (\S+)/.exec(record) ?? [];
    const waiter = waiterId && `${channel}/${waiterId}`;
    this.#longestMs.set(owner, Math.max(ttlMs, this.#longestMs.get(owner) ?? 0));
    const taking = [lock, owner, "PX", `${ttlMs}`, "NX", "GET"];
    for (let tries = 0; ; tries += 1) {
      const before = await this.#keys.text(lock, "set", taking);
      if (isForeign(before)) return before;
      if (before === null || before === owner) break;
      const answer = await this.#refusal(keys, waiter, since);
      if (answer) return answer;
      // The lock became free before its holder could see the waiter.
      if (tries === MOST_TRIES) throw contended();
    }
    for (let tries = 0; tries < MOST_TRIES; tries += 1) {
      const [known, nowUs, queued] = await Promise.all([
        this.#keys.ballot(keys),
        this.#keys.nowUs(lock),
        this.#queue.size(waiters),
      ]);
      const refused = isForeign(known) ? known : refusedBallot(known, token, nowUs, owner);
      if (refused) {
        await this.#keys.delete(lock, owner);
        return refused;
      }
      if (isForeign(known)) continue;
      if (known.raw !== null && known.stored === token) return 1;
      const text = queued > 0 ? `${record.slice(0, 17)}W${record.slice(18)}` : record;
      const untilMs = Math.max(keptUntilMs, Math.ceil(nowUs / 1000) + BALLOT_KEPT_MS);
      if (await this.#keys.replace(keys, known.raw, text, untilMs)) return 1;
    }
    await this.#keys.delete(lock, owner);
    throw contended();
  }

  async #renewAll(given: readonly string[], args: readonly string[]): Promise<unknown[]> {
    const [, , ...leases] = args;
    const answers: Promise<unknown>[] = [];
    for (let at = 0; 4 * at < leases.length; at += 1) {
      const [owner = "", , , ttlMs = ""] = leases.slice(4 * at);
      const [lock = "", ballot = ""] = given.slice(1 + 2 * at);
      answers.push(
        this.#renew(["", lock, ballot], owner, Number(ttlMs)).catch((error: unknown) => {
          return ["E", error instanceof Error ? error.message : String(error)];
        }),
      );
    }
    return await Promise.all(answers);
  }

  async #renew(keys: Keys, owner: string, ttlMs: number): Promise<unknown> {
    const [, lock, key] = keys;
    const longestMs = Math.max(ttlMs, this.#longestMs.get(owner) ?? 0);
    this.#longestMs.set(owner, longestMs);
    const prolonging = [lock, owner, "IFEQ", owner, "PX", `${longestMs}`];
    if ((await this.#keys.text(lock, "set", prolonging)) === "OK") {
      // The record of the holder stays for as long as the holder does.
      await this.#driver.send(key, "pexpire", [key, `${RECORD_KEPT_MS}`]);
      return ["G", longestMs];
    }
    this.#longestMs.delete(owner);
    if ((await this.#keys.text(lock, "get", [lock])) !== null) return ["H"];
    const known = await this.#keys.ballot(keys);
    if (isForeign(known)) return known;
    const [, revoked, reason] = /^(\S+) (.*)$/s.exec(known.rest) ?? [];
    return known.kind === "V" && revoked === owner ? ["V", reason] : ["N"];
  }

  async #release(keys: Keys, args: readonly string[]): Promise<unknown> {
    const [waiters, lock] = keys;
    const [start = "", , , keepMs = "0", meta = "{}", waiter = "", since = ""] = args;
    const [, digits = "0", owner = ""] = /^(\d+) H (\S+) $/.exec(start) ?? [];
    await this.#votes.get(owner)?.catch(() => {});
    this.#longestMs.delete(owner);
    const token = Number(digits);
    if (Number(keepMs) > 0) return this.#leaveMark(keys, owner, token, { keepMs, meta });
    const isHeld = await this.#keys.delete(lock, owner);
    if (waiter) await this.#queue.enter(waiters, waiter, since);
    await this.#keys.rewrite(keys, (known, queued) => {
      const kept = isHeld ? (queued > 0 ? " W" : "") : tailOf(known, queued);
      return `${Math.max(known.stored, token + 1)}${kept}`;
    });
    if (isHeld) await this.#queue.wakeNext(waiters);
    return isHeld ? 1 : 0;
  }

  /** The record comes first: without it, the value of a mark would be that of a stranger. */
  async #leaveMark(
    keys: Keys,
    owner: string,
    token: number,
    { keepMs, meta }: { readonly keepMs: string; readonly meta: string },
  ): Promise<number> {
    const [waiters, lock] = keys;
    const value = `done:${owner}`;
    const isWritten = await this.#keys.rewrite(keys, (known, _queued, nowUs) => {
      if (!known.rest.startsWith(`${owner} `)) return null;
      const record = [value, token, "01", Math.floor(nowUs / 1000), "-", meta].join(" ");
      return `${Math.max(known.stored, token + 1)} D ${record}`;
    });
    const marking = [lock, value, "IFEQ", owner, "PX", keepMs];
    const isMarked = isWritten && (await this.#keys.text(lock, "set", marking)) === "OK";
    if (isMarked) await this.#queue.wakeAll(waiters);
    return isMarked ? 1 : 0;
  }

  async #wait(keys: Keys, [waiter = "", since = ""]: readonly string[]): Promise<unknown> {
    const refusal = await this.#refusal(keys, waiter, since);
    if (refusal) return refusal;
    const known = await this.#keys.ballot(keys);
    return isForeign(known) ? known : ["O", whole(known.stored), 0];
  }

  async #leave(
    [waiters, lock]: Keys,
    [waiter = "", reserveMs]: readonly string[],
  ): Promise<number> {
    await this.#queue.leave(waiters, waiter);
    if (reserveMs === "0") return 1;
    // The waiter may have been woken: the next one is.
    if ((await this.#keys.text(lock, "get", [lock])) === null) await this.#queue.wakeNext(waiters);
    return 1;
  }

  async #revoke(keys: Keys, [given = "", reason = ""]: readonly string[]): Promise<number> {
    const [waiters, lock] = keys;
    const known = await this.#keys.ballot(keys);
    if (isForeign(known) || !/[HWD]/.test(known.kind)) return 0;
    const [owner = "", first = "", span = "", , channel = ""] = known.rest.split(" ");
    const turn = Number(given) - Number(first);
    if (!(turn >= 0 && turn < Number(span))) return 0;
    if (!(await this.#keys.delete(lock, owner))) return 0;
    await this.#keys.rewrite(keys, ({ stored }) => {
      return `${Math.max(stored, Number(first) + 1)} V ${owner} ${reason}`;
    });
    await this.#queue.tellRevoked(channel, `${owner} ${first} ${reason}`);
    await this.#queue.wakeNext(waiters);
    return 1;
  }

  async #look(keys: Keys): Promise<unknown> {
    const [waiters, lock, key] = keys;
    const [pttl, value, raw, queue] = await Promise.all([
      this.#driver.send(lock, "pttl", [lock]),
      this.#keys.text(lock, "get", [lock]),
      this.#keys.text(key, "get", [key]),
      this.#queue.all(waiters),
    ]);
    if (isForeign(raw)) return raw;
    return [pttl, isForeign(value) ? `a ${value[2]}` : (value ?? ""), raw ?? "", queue];
  }

  async #survey(): Promise<unknown> {
    const info = String(await this.#driver.send("", "info", ["server"]));
    const field = (name: string) => new RegExp(`^${name}:(\\w+)`, "m").exec(info)?.[1] ?? "";
    return [field("run_id"), field("uptime_in_seconds"), whole(await this.#keys.nowUs(""))];
  }

  /** Enters the waiter, then looks: the answer that another owner holds the lock, or null. */
  async #refusal(keys: Keys, waiter: string, since: string): Promise<unknown> {
    const [waiters, lock] = keys;
    const rank = waiter ? await this.#queue.enter(waiters, waiter, since) : 0;
    // A holder with a script looks at its queue only where the record says so.
    if (waiter) {
      await this.#keys.rewrite(keys, (known, queued) => {
        return known.raw === null ? null : `${known.stored}${tailOf(known, queued)}`;
      });
    }
    const [value, pttl, known] = await Promise.all([
      this.#keys.text(lock, "get", [lock]),
      this.#driver.send(lock, "pttl", [lock]),
      this.#keys.ballot(keys),
    ]);
    if (isForeign(value)) return value;
    if (isForeign(known)) return known;
    return value === null ? null : ["H", whole(known.stored), pttl, value, known.raw ?? "", rank];
  }
}

/** Why the ballot of a new owner does not count; null where it does. */
function refusedBallot(
  { raw, stored, rest }: Ballot,
  token: number,
  nowUs: number,
  owner: string,
): unknown {
  if (stored > nowUs + YEAR_US) return ["X", "", "ahead"];
  if (token > nowUs + YEAR_US) return ["A", whole(nowUs)];
  if (raw === null) return token > nowUs - SECOND_US ? null : ["L", whole(nowUs)];
  const isRepeated = token === stored && rest.startsWith(`${owner} `);
  return token > stored || isRepeated ? null : ["L", whole(stored)];
}

function contended(): StoreError {
  return new StoreError("Other clients change the keys of this lock all the time.", {
    outcome: "not_applied",
    store: "redlock",
  });
}

function needsScripts(what: string): StoreError {
  return new StoreError(`${what} needs the right to run scripts: docs/stores/redlock.md#rights.`, {
    outcome: "not_applied",
    retryable: false,
    store: "redlock",
  });
}
