/**
 * Locks of the published algorithm: a random value at one or more keys, on a majority of servers.
 *
 * Why it is safe: a holder believes until its deadline, which counts from before its request was
 * sent, less the drift. Each server of the majority keeps the keys until after that, because it set
 * or prolonged them after the request was sent. A key that exists is never overwritten, so no other
 * holder gets a majority before. A request that is sent again does no harm: it finds its own value.
 * An attempt that fails is withdrawn on all servers, behind its own requests on the same
 * connections, and the next attempt has a value of its own.
 *
 * The assumption: servers do not forget. A server that restarts empty votes again at once, as with
 * the packages that this folder replaces. The store `holdfast/redlock` closes that gap.
 */
import { ALREADY_TAKEN, EXTEND, GIVE, TAKE } from "../stores/redis-client/plain-keys.js";
import { pause } from "../time/pause.js";
import {
  type AgainstListener,
  type Answers,
  ClientQuorum,
  runtime,
  type Votes,
} from "./client-quorum.js";

/** Redis expires by the millisecond; both ends of a lease may be rounded. */
const PRECISION_MS = 2;
/** A server that takes longer to set a key is asked again. */
const MAX_TAKE_MS = 5_000;
/** How long a server may take to delete a key. The key expires without that, too. */
const GIVE_LIMIT_MS = 1_000;

/** How often to try, and for how long to believe. */
export interface AttemptRules {
  readonly driftFactor: number;
  /** How many attempts follow the first; -1 for no end. */
  readonly retryCount: number;
  readonly retryDelay: number;
  readonly retryJitter: number;
}

/** The keys of one holder. */
export interface HeldKeys<Client> {
  readonly keys: readonly string[];
  readonly value: string;
  /** The time of the only server when the keys were taken, in microseconds. */
  readonly token: bigint | undefined;
  /** Until then the holder may believe that it holds the keys, by the clock of the runtime. */
  readonly deadlineMs: number;
  /** The deadline by the wall clock. */
  readonly expiration: number;
  /** The votes of each attempt. */
  readonly attempts: readonly Promise<Votes<Client>>[];
}

/** No majority did it, in any attempt. */
export class NoMajorityError<Client> extends Error {
  readonly attempts: readonly Promise<Votes<Client>>[];

  constructor(attempts: readonly Promise<Votes<Client>>[]) {
    super("No majority of the servers did it.");
    this.attempts = attempts;
  }
}

/** How much earlier than the expiry the deadline is. */
export function driftOf(ttlMs: number, driftFactor: number): number {
  return Math.round(driftFactor * ttlMs) + PRECISION_MS;
}

export class KeyLock<Client> {
  readonly quorum: ClientQuorum<Client>;
  readonly #refusal: (count: number, keys: readonly string[]) => Error;

  /** `refusal` makes the error of a server that did it for only `count` of the keys. */
  constructor(
    clients: Iterable<Client>,
    refusal: (count: number, keys: readonly string[]) => Error,
    onAgainst: AgainstListener,
  ) {
    this.quorum = new ClientQuorum(clients, onAgainst);
    this.#refusal = refusal;
  }

  /** Throws `NoMajorityError` after the last attempt; nothing is kept then. */
  async acquire(
    keys: readonly string[],
    ttlMs: number,
    rules: AttemptRules,
  ): Promise<HeldKeys<Client>> {
    const attempts: Promise<Votes<Client>>[] = [];
    for (;;) {
      const value = runtime.random.id();
      const answers = await this.quorum.ask({
        script: TAKE,
        keys,
        args: [value, `${ttlMs}`],
        // A grant that comes after the ttl would have expired.
        limitMs: Math.min(ttlMs, MAX_TAKE_MS),
        judge: (count) => (count === ALREADY_TAKEN ? null : this.#judge(count, keys)),
      });
      attempts.push(answers.votes);
      const held = this.#held(keys, value, ttlMs, rules, answers, attempts);
      if (held && runtime.clock.exactMs() < held.deadlineMs) return held;
      const withdrawn = this.#withdraw(keys, value);
      if (isLast(attempts.length, rules)) {
        await withdrawn;
        throw new NoMajorityError(attempts);
      }
      await pause(runtime.timers, pauseMs(rules), true);
    }
  }

  /**
   * Prolongs the keys, if a majority still holds the value. Throws `NoMajorityError` when a
   * majority does not, or after the last attempt, or at the deadline: no attempt begins after it,
   * and none when `isOver`.
   */
  async extend(
    held: Omit<HeldKeys<Client>, "attempts" | "token">,
    ttlMs: number,
    rules: AttemptRules,
    isOver: () => boolean = () => false,
  ): Promise<HeldKeys<Client>> {
    const attempts: Promise<Votes<Client>>[] = [];
    for (;;) {
      const leftMs = held.deadlineMs - runtime.clock.exactMs();
      if (leftMs <= 0 || isOver()) throw new NoMajorityError(attempts);
      const { keys, value } = held;
      const answers = await this.quorum.ask({
        script: EXTEND,
        keys,
        args: [value, `${ttlMs}`, "0"],
        limitMs: leftMs,
        judge: (count) => this.#judge(count, keys),
      });
      attempts.push(answers.votes);
      const next = this.#held(keys, value, ttlMs, rules, answers, attempts);
      if (next) return next;
      if (answers.isRefused || isLast(attempts.length, rules)) throw new NoMajorityError(attempts);
      const restMs = held.deadlineMs - runtime.clock.nowMs();
      await pause(runtime.timers, Math.max(0, Math.min(pauseMs(rules), restMs)), true);
    }
  }

  /** Deletes the keys. Throws `NoMajorityError` unless a majority held them and answered. */
  async release(
    keys: readonly string[],
    value: string,
    rules: AttemptRules,
  ): Promise<readonly Promise<Votes<Client>>[]> {
    const attempts: Promise<Votes<Client>>[] = [];
    // A server that did not answer may have deleted the keys, and finds nothing the next time.
    const doubtful = new Set<Client>();
    for (;;) {
      const answers = await this.quorum.ask({
        script: GIVE,
        keys,
        args: [value],
        limitMs: GIVE_LIMIT_MS,
        judge: (count, client, isResent) =>
          isResent || doubtful.has(client) ? null : this.#judge(count, keys),
      });
      attempts.push(answers.votes);
      if (answers.isCarried) return attempts;
      if (answers.isRefused || isLast(attempts.length, rules)) throw new NoMajorityError(attempts);
      for (const client of answers.doubtful) doubtful.add(client);
      await pause(runtime.timers, pauseMs(rules), true);
    }
  }

  #withdraw(keys: readonly string[], value: string): Promise<unknown> {
    const args = [value];
    const limitMs = GIVE_LIMIT_MS;
    return this.quorum.ask({ script: GIVE, keys, args, limitMs, judge: () => null });
  }

  #judge(count: number, keys: readonly string[]): Error | null {
    return count === keys.length ? null : this.#refusal(count, keys);
  }

  #held(
    keys: readonly string[],
    value: string,
    ttlMs: number,
    { driftFactor }: AttemptRules,
    { isCarried, sentMs, token }: Answers<Client>,
    attempts: readonly Promise<Votes<Client>>[],
  ): HeldKeys<Client> | null {
    if (!isCarried) return null;
    const deadlineMs = sentMs + ttlMs - driftOf(ttlMs, driftFactor);
    return { keys, value, token, deadlineMs, expiration: wallAt(deadlineMs), attempts };
  }
}

function isLast(attempts: number, { retryCount }: AttemptRules): boolean {
  return retryCount !== -1 && attempts > retryCount;
}

function pauseMs({ retryDelay, retryJitter }: AttemptRules): number {
  const jitter = Math.floor((runtime.random.fraction() * 2 - 1) * retryJitter);
  return Math.max(0, retryDelay + jitter);
}

/** The time of the wall clock at a moment of the runtime's clock. */
function wallAt(moment: number): number {
  return Math.floor(runtime.clock.wallUs() / 1_000 + moment - runtime.clock.nowMs());
}

/** The moment of the runtime's clock at a time of the wall clock. */
export function momentAt(wallMs: number): number {
  return runtime.clock.nowMs() + wallMs - runtime.clock.wallUs() / 1_000;
}
