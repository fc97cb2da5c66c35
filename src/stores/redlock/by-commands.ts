/**
 * The verbs of a lone server by plain commands, for users that may not run scripts. It needs
 * `SET … IFEQ`: Redis 8.4, Valkey 8.1 or newer. The answers are those of the script, but there is
 * no queue: waiters look at the key by their own clocks.
 *
 * Why it is safe: only `SET … NX` takes the key, and only `SET … IFEQ` with the value of the owner
 * prolongs, marks or deletes it. So no client changes the key of another owner, whenever a command
 * arrives. An owner whose key may have been deleted does not ask again: a late copy of the delete
 * meets no later key. A deadline counts from before `SET` was sent, as with the script.
 *
 * Why tokens rise: an owner writes its ballot after it took the key, by a comparison with the
 * ballot that it read, and above it; the answer counts only before the deadline. So a ballot that
 * counts was written while its owner had the key, and each later owner compares with it, or with a
 * higher one. A revocation finds an owner by its ballot, so it never comes before the ballot.
 *
 * Why a revoked holder hears of it: the key is deleted, then the record tells why, then the message
 * is sent. A holder that subscribes before the message hears it; one that looks after it subscribed
 * finds the record. If the revoking client fails on its way, the next renewal finds no key.
 *
 * Why a mark that is told as left is there: one comparison replaces the value of the owner by the
 * mark, so no client takes the key in between. An acquire that read the record before it compares
 * the key, which the mark has. Whether an earlier copy left the mark is read from the key. The
 * record is kept for a day longer than the mark, so it is there while the key has the mark.
 *
 * Why a renewal never shortens a lease: all requests of an owner are of one length, so a late copy
 * ends later than all that its owner believed. The length rises only where no late copy can exist.
 * An owner from before the first refusal of a script keeps at least the time that it has left.
 */
import { StoreError } from "../../errors/index.js";
import type { Driver } from "../redis-client/driver.js";
import { readVote } from "./codec.js";
import {
  BALLOT_KEPT_MS,
  type Ballot,
  CommandKeys,
  type ForeignAnswer,
  isAbout,
  isForeign,
  isLaterHolder,
  MAX_TRIES,
  markValue,
  tailOf,
  whole,
} from "./command-keys.js";
import type { Keys } from "./layout.js";
import { isByCommands } from "./name-record.js";
import { OwnLeases } from "./own-leases.js";

const YEAR_US = 31_536_000_000_000;
/** The record of a holder is kept for longer than a ballot. */
const RECORD_KEPT_MS = 172_800_000;

export class ByCommands {
  readonly #driver: Driver;
  readonly #keys: CommandKeys;
  readonly #leases: OwnLeases;
  /** By lock, its vote or release under way: the next one comes behind it, as with a script. */
  readonly #turns = new Map<string, Promise<unknown>>();
  /** By owner, its record, where a revocation failed on its way: the next one completes it. */
  readonly #halfRevoked = new Map<string, string>();

  constructor(driver: Driver) {
    this.#driver = driver;
    this.#keys = new CommandKeys(driver);
    this.#leases = new OwnLeases(driver);
  }

  /** Runs one verb; the answer has the form of the script's. */
  async run(given: readonly string[], all: readonly string[]): Promise<unknown> {
    const keys = given as Keys;
    const [verb = "", ...args] = all;
    switch (verb) {
      case "vote":
        return this.#inTurn(keys, () => this.#vote(keys, all));
      case "renew":
        return this.#renewAll(given, args);
      case "release":
        return this.#inTurn(keys, () => this.#release(keys, args));
      case "wait":
        return this.#wait(keys);
      case "leave":
        return 1;
      case "revoke":
        return this.#revoke(keys, args);
      case "look":
        return this.#look(keys);
      case "survey":
        return this.#survey();
      default:
        throw needsScripts(`A call of ${verb}`);
    }
  }

  #inTurn([, lock]: Keys, work: () => Promise<unknown>): Promise<unknown> {
    const done = (this.#turns.get(lock) ?? Promise.resolve()).then(work);
    const settled = done
      .catch(() => {})
      .then(() => {
        if (this.#turns.get(lock) === settled) this.#turns.delete(lock);
      });
    this.#turns.set(lock, settled);
    return done;
  }

  async #vote(keys: Keys, args: readonly string[]): Promise<unknown> {
    const [, lock, key] = keys;
    const { owner, ballot: token, record, delayMs, ttlMs } = readVote(args);
    if (delayMs > 0) throw needsScripts('bootstrap: "wait"');
    // An owner from before the first refusal of a script: the next one has a value that tells.
    if (!isByCommands(owner)) return ["L", whole(0)];
    const lease = this.#leases.of(owner, ttlMs);
    const taking = this.#keys.plain.take(lock, owner, lease.ttlMs);
    const reading = this.#keys.knownUnder(keys, owner);
    // Where one fails, the other is not under way any more when the next call has its turn.
    await Promise.allSettled([taking, reading]);
    const before = await taking;
    let [known, nowUs, isUnderKey] = await reading;
    if (isForeign(before)) return before;
    if (before !== null && before !== owner) return this.#held(keys, known);
    // A request that was sent again, or for a higher ballot: the lease starts again.
    if (before === owner && !(await this.#keys.plain.prolong(lock, owner, lease.ttlMs)))
      throw contended();
    for (let tries = 1; ; tries += 1) {
      // A record that was read without the key may be that of the next holder: an owner whose key
      // expired before it read the record must not replace it.
      if (!isUnderKey && tries > 1) return this.#held(keys, known);
      // A comparison that was sent again finds the record that it has written.
      const isMine = before === owner || tries > 1;
      const refusal = isForeign(known)
        ? known
        : refusedBallot(known, key, token, nowUs, isMine && owner);
      if (refusal) {
        // Too low a ballot says nothing about a key that the owner had before.
        if (before === null || refusal[0] !== "L") await this.#keys.plain.delete(lock, owner);
        return refusal;
      }
      const { raw, stored, kind } = known as Ballot;
      if (raw !== null && stored === token) break;
      // Clients with scripts wake their waiters where the record says that there are some.
      const hasWaiters = kind === "W" || kind === "R";
      const text = hasWaiters ? `${record.slice(0, 17)}W${record.slice(18)}` : record;
      const untilMs = Math.ceil(Math.max(token, nowUs) / 1000) + BALLOT_KEPT_MS;
      if (isUnderKey && (await this.#keys.replace(key, raw, text, untilMs))) break;
      if (tries === MAX_TRIES) throw contended();
      [known, nowUs] = await this.#keys.known(keys);
      // The key is read after the record.
      isUnderKey = (await this.#keys.text(lock, "get", [lock])) === owner;
    }
    this.#leases.keep(owner, lease);
    return 1;
  }

  #renewAll(given: readonly string[], [, , ...leases]: readonly string[]): Promise<unknown[]> {
    const answers: Promise<unknown>[] = [];
    for (let at = 0; 4 * at < leases.length; at += 1) {
      const [owner = "", token = "", , ttlMs = ""] = leases.slice(4 * at);
      const [lock = "", ballot = ""] = given.slice(1 + 2 * at);
      const renewed = this.#renew(["", lock, ballot], owner, Number(token), Number(ttlMs));
      answers.push(renewed.catch((error: unknown) => ["E", String(error)]));
    }
    return Promise.all(answers);
  }

  async #renew(keys: Keys, owner: string, token: number, ttlMs: number): Promise<unknown> {
    const [, lock, key] = keys;
    const lease = await this.#leases.toRenew(lock, owner, ttlMs);
    // A late copy of a shorter request would shorten the lease, so there must be none.
    if (ttlMs > lease.ttlMs && this.#leases.isAnswered(lease)) lease.ttlMs = ttlMs;
    lease.unanswered += 1;
    const isProlonged = await this.#keys.plain.prolong(lock, owner, lease.ttlMs);
    lease.unanswered -= 1;
    const [known, nowUs] = await this.#keys.known(keys);
    if (isForeign(known)) return known;
    const isRevoked = known.kind === "V" && isAbout(known, owner);
    if (isProlonged && !isRevoked && !isLaterHolder(known, owner, token)) {
      // The record of the holder stays for as long as the holder does, and a ballot for its time.
      const keptMs = RECORD_KEPT_MS + Math.max(0, known.stored - nowUs) / 1000;
      await this.#driver.send(key, "pexpire", [key, whole(keptMs), "GT"]);
      return ["G", lease.ttlMs];
    }
    this.#leases.forget(owner);
    // The lease had expired: a late copy of the first request has set the key again.
    if (isProlonged) await this.#keys.plain.delete(lock, owner);
    else if ((await this.#keys.text(lock, "get", [lock])) !== null) return ["H"];
    return isRevoked ? ["V", known.rest.slice(owner.length + 1)] : ["N"];
  }

  async #release(keys: Keys, args: readonly string[]): Promise<unknown> {
    const [, lock] = keys;
    const [start = "", , , keepMs = "0", meta = "{}"] = args;
    const [, digits = "0", owner = ""] = /^(\d+) H (\S+) $/.exec(start) ?? [];
    this.#leases.forget(owner);
    const token = Number(digits);
    const isMarking = Number(keepMs) > 0;
    const marked = isMarking && (await this.#leaveMark(keys, owner, token, { keepMs, meta }));
    if (marked) return marked === true ? 1 : marked;
    const isHeld = (await this.#keys.plain.delete(lock, owner)) && !isMarking;
    // The record of a later holder stays as it is.
    await this.#keys.rewrite(keys, (known, nowUs) => {
      // A ballot so far ahead would close the name until then, if it is not that of the name.
      const closed = token > Math.max(nowUs + YEAR_US, known.stored) ? 0 : token + 1;
      const isOver = isAbout(known, owner) && known.kind !== "V";
      const tail = isOver ? (known.kind === "W" ? " W" : "") : tailOf(known);
      return `${whole(Math.max(known.stored, closed))}${tail}`;
    });
    return isHeld ? 1 : 0;
  }

  /**
   * The record comes first: without it, the value of a mark would be that of a stranger. True where
   * the key has the mark, also from an earlier request; false where the owner has lost the key;
   * rejects where it has the key, and the record cannot be written.
   */
  async #leaveMark(
    keys: Keys,
    owner: string,
    token: number,
    { keepMs, meta }: { readonly keepMs: string; readonly meta: string },
  ): Promise<boolean | ForeignAnswer> {
    const [, lock] = keys;
    let isHeld = true;
    const value = markValue(owner);
    const written = await this.#keys.rewrite(
      keys,
      async (known, nowUs) => {
        if (isAbout(known, value)) return known.raw;
        // The key is read after the record: if the owner has it, no later holder wrote that record.
        isHeld = (await this.#keys.text(lock, "get", [lock])) === owner;
        if (!isHeld) return null;
        const record = [value, token, "01", Math.floor(nowUs / 1000), "-", meta].join(" ");
        return `${whole(Math.max(known.stored, token + 1))} D ${record}`;
      },
      Number(keepMs),
    );
    if (isForeign(written)) return written;
    if (!written && isHeld) throw contended();
    if (written && (await this.#keys.plain.replace(lock, owner, value, ["PX", keepMs])))
      return true;
    // An earlier copy of this request may have left the mark. Only the key tells it from a lease
    // that ended without one.
    return (await this.#keys.text(lock, "get", [lock])) === value;
  }

  async #wait(keys: Keys): Promise<unknown> {
    const [, lock] = keys;
    const [value, [known]] = await Promise.all([
      this.#keys.text(lock, "get", [lock]),
      this.#keys.known(keys),
    ]);
    if (isForeign(value)) return value;
    if (value !== null) return this.#held(keys, known);
    return isForeign(known) ? known : ["O", whole(known.stored), 0];
  }

  async #revoke(keys: Keys, [given = "", reason = ""]: readonly string[]): Promise<number> {
    const [, lock] = keys;
    const [known] = await this.#keys.known(keys);
    if (isForeign(known)) return 0;
    const [owner = ""] = known.rest.split(" ", 1);
    const half = this.#halfRevoked.get(owner);
    const rest = half ?? (/[HWD]/.test(known.kind) ? known.rest : "");
    const [, first = "", span = "", , channel = ""] = rest.split(" ");
    const turn = Number(given) - Number(first);
    if (!(turn >= 0 && turn < Number(span))) return 0;
    this.#halfRevoked.delete(owner);
    try {
      if (!(await this.#isEnded(lock, owner, half !== undefined))) return 0;
      // The record comes before the message: a holder that missed the message looks for the record.
      await this.#keys.rewrite(keys, (now) => {
        if (!isAbout(now, owner)) return null;
        return `${whole(Math.max(now.stored, Number(first) + 1))} V ${owner} ${reason}`;
      });
      if (channel.startsWith("holdfast@")) {
        await this.#driver.send("", "publish", [channel, `x ${owner} ${first} ${reason}`]);
      }
    } catch (error) {
      this.#halfRevoked.set(owner, rest);
      throw error;
    }
    return 1;
  }

  /** Whether the key is deleted by this revocation, or by one of this client that failed then. */
  async #isEnded(lock: string, owner: string, isRepeated: boolean): Promise<boolean> {
    const changes = this.#driver.changes();
    if (await this.#keys.plain.delete(lock, owner)) return true;
    const mayBeDone = isRepeated || changes !== this.#driver.changes();
    return mayBeDone && (await this.#keys.text(lock, "get", [lock])) === null;
  }

  async #look(keys: Keys): Promise<unknown> {
    const [, lock] = keys;
    const [pttl, value, [known], kept] = await Promise.all([
      this.#driver.send(lock, "pttl", [lock]),
      this.#keys.text(lock, "get", [lock]),
      this.#keys.known(keys),
      this.#keys.both(keys),
    ]);
    if (isForeign(known)) return known;
    return [pttl, isForeign(value) ? `a ${value[2]}` : (kept.value ?? ""), kept.raw ?? "", []];
  }

  async #survey(): Promise<unknown> {
    const info = String(await this.#driver.send("", "info", ["server"]));
    const field = (name: string) => new RegExp(`^${name}:(\\w+)`, "m").exec(info)?.[1] ?? "";
    return [field("run_id"), field("uptime_in_seconds"), whole(await this.#keys.nowUs(""))];
  }

  /** The answer that another owner has the key, if it still has. */
  async #held(keys: Keys, known: Ballot | ForeignAnswer): Promise<unknown> {
    if (isForeign(known)) return known;
    const [, lock, key] = keys;
    const stored = whole(known.stored);
    const [{ value, raw }, pttl, found] = await Promise.all([
      this.#keys.both(keys),
      this.#driver.send(lock, "pttl", [lock]),
      this.#keys.text(key, "get", [key]),
    ]);
    if (isForeign(found)) return found;
    // The key is gone by now, and due at once.
    if (value === null || Number(pttl) === -2) return ["R", stored, 0, 0];
    return ["H", stored, pttl, value, raw ?? "", 0];
  }
}

/** Why the ballot of a new owner does not count; null where it does. */
function refusedBallot(
  known: Ballot,
  key: string,
  token: number,
  nowUs: number,
  repeatedOwner: string | false,
): readonly string[] | null {
  const { raw, stored } = known;
  if (stored > nowUs + YEAR_US) return ["X", key, "ahead"];
  if (token > nowUs + YEAR_US) return ["A", whole(nowUs)];
  const isRepeated = token === stored && repeatedOwner && isAbout(known, repeatedOwner);
  return token > stored || isRepeated ? null : ["L", whole(raw === null ? nowUs : stored)];
}

function contended(): StoreError {
  return new StoreError("Other clients change the keys of this lock all the time.", {
    outcome: "unknown",
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
