import { majorityOf, preventsMajority } from "../rules/majority.js";
import type { Script } from "../stores/redis-client/plain-keys.js";
import { networkRuntime, type Runtime } from "../time/runtime.js";
import { TimeLimitError } from "../time/timers.js";
import { type ScriptDriver, scriptDriver } from "./script-client.js";

/** Time and chance of all locks of this folder. */
export const runtime: Runtime = networkRuntime();

/** The votes of all clients in one attempt. */
export interface Votes<Client> {
  /** How many clients there are. */
  readonly membershipSize: number;
  /** How many of them make a majority. */
  readonly quorumSize: number;
  /** The clients whose servers did what they were asked. */
  readonly votesFor: Set<Client>;
  /** The other clients, each with the reason. */
  readonly votesAgainst: Map<Client, Error>;
}

/** A request to all servers. */
export interface Question<Client> {
  readonly script: Script;
  readonly keys: readonly string[];
  readonly args: readonly string[];
  /** How long a server may take: a later answer does not count. */
  readonly limitMs: number;
  /** Null where the server did it, else the reason why not. `isResent`: it may have come twice. */
  judge(answer: number, client: Client, isResent: boolean): Error | null;
}

/** The answers to one question, as far as they decide. */
export interface Answers<Client> {
  /** A majority did it. */
  readonly isCarried: boolean;
  /** So many servers refused that no majority can do it: to ask again does not help. */
  readonly isRefused: boolean;
  /** The local time just before the first request was sent. */
  readonly sentMs: number;
  /** The time of the only server when it did it; undefined with several servers. */
  readonly token: bigint | undefined;
  /** The clients whose servers may have done it, although they did not say so; as known by now. */
  readonly doubtful: ReadonlySet<Client>;
  /** All votes, when the last one is in, or its time is over. */
  readonly votes: Promise<Votes<Client>>;
}

/** Hears why a server did not do what it was asked; `isRefusal`: the server said so. */
export type AgainstListener = (error: Error, isRefusal: boolean) => void;

/**
 * The servers that decide together: a majority of them, as the published algorithm asks for. A
 * server that is silent for too long counts as one that refused, but its request may take effect.
 */
export class ClientQuorum<Client> {
  readonly clients: Set<Client>;
  readonly #drivers: ReadonlyMap<Client, ScriptDriver>;
  readonly #onAgainst: AgainstListener;

  /** Throws where a client cannot run scripts. */
  constructor(clients: Iterable<Client>, onAgainst: AgainstListener = () => {}) {
    this.clients = new Set(clients);
    this.#drivers = new Map([...this.clients].map((client) => [client, scriptDriver(client)]));
    this.#onAgainst = onAgainst;
  }

  /** Resolves as soon as the answers decide, at the latest after `limitMs`. Never rejects. */
  ask(question: Question<Client>): Promise<Answers<Client>> {
    return new Promise((onDecided) => {
      const count = new Count(this.#drivers.size, question.limitMs, onDecided, this.#onAgainst);
      for (const [client, driver] of this.#drivers) send(client, driver, question, count);
    });
  }
}

function send<Client>(
  client: Client,
  driver: ScriptDriver,
  { script, keys, args, judge }: Question<Client>,
  count: Count<Client>,
): void {
  const before = driver.changes();
  count.open.add(client);
  driver.run(script, keys, args).then(
    (raw) => {
      const [answer = Number.NaN, ...time] = [raw].flat().map(Number);
      if (!Number.isSafeInteger(answer)) {
        const text = `Unexpected result of type ${typeof raw} returned from redis.`;
        return count.onVote(client, new Error(text), false);
      }
      const refusal = judge(answer, client, driver.changes() !== before);
      count.token = tokenAt(time);
      count.onVote(client, refusal, refusal !== null);
    },
    (error: unknown) => {
      count.onVote(client, error instanceof Error ? error : new Error(String(error)), false);
    },
  );
}

/** The microseconds of a time of Redis: seconds, and microseconds within them. */
function tokenAt(time: readonly number[]): bigint | undefined {
  const [seconds = Number.NaN, micros = Number.NaN] = time;
  if (!Number.isSafeInteger(seconds) || !Number.isSafeInteger(micros)) return undefined;
  return BigInt(seconds) * 1_000_000n + BigInt(micros);
}

/** Counts the answers to one question. */
class Count<Client> {
  /** The clients whose answers are awaited. */
  readonly open = new Set<Client>();
  /** Of the last answer. */
  token: bigint | undefined;
  readonly #sentMs = runtime.clock.nowMs();
  readonly #votes: Votes<Client>;
  readonly #doubtful = new Set<Client>();
  readonly #all: Promise<Votes<Client>>;
  readonly #timer: { cancel(): void };
  readonly #onDecided: (answers: Answers<Client>) => void;
  readonly #onAgainst: AgainstListener;
  #onAll: () => void = () => {};

  constructor(
    size: number,
    limitMs: number,
    onDecided: (answers: Answers<Client>) => void,
    onAgainst: AgainstListener,
  ) {
    const votes = { votesFor: new Set<Client>(), votesAgainst: new Map<Client, Error>() };
    this.#votes = { membershipSize: size, quorumSize: majorityOf(size), ...votes };
    this.#onDecided = onDecided;
    this.#onAgainst = onAgainst;
    this.#all = new Promise((resolve) => {
      this.#onAll = () => resolve(this.#votes);
    });
    const onLate = (): void => {
      for (const client of [...this.open]) this.onVote(client, new TimeLimitError(limitMs), false);
    };
    this.#timer = runtime.timers.after(limitMs, onLate, true);
  }

  onVote(client: Client, against: Error | null, isRefusal: boolean): void {
    // A vote after the time limit: the client counts as doubtful already.
    if (!this.open.delete(client)) return;
    const { votesFor, votesAgainst } = this.#votes;
    if (against === null) votesFor.add(client);
    else {
      votesAgainst.set(client, against);
      if (!isRefusal) this.#doubtful.add(client);
      this.#tell(against, isRefusal);
    }
    this.#decide();
    if (this.open.size > 0) return;
    this.#timer.cancel();
    this.#onAll();
  }

  #decide(): void {
    const { membershipSize, quorumSize, votesFor, votesAgainst } = this.#votes;
    const isCarried = votesFor.size >= quorumSize;
    if (!isCarried && !preventsMajority(votesAgainst.size, membershipSize)) return;
    const refusals = votesAgainst.size - this.#doubtful.size;
    const isRefused = preventsMajority(refusals, membershipSize);
    const doubtful = this.#doubtful;
    // Clocks of several servers differ: the time of one of them says nothing to the next holder.
    const token = membershipSize === 1 ? this.token : undefined;
    const answers = { isCarried, isRefused, sentMs: this.#sentMs, token, doubtful };
    this.#onDecided({ ...answers, votes: this.#all });
  }

  /** A listener that throws ends the program, as with every emitter, but not the count. */
  #tell(against: Error, isRefusal: boolean): void {
    try {
      this.#onAgainst(against, isRefusal);
    } catch (error) {
      runtime.timers.soon(() => {
        throw error;
      });
    }
  }
}
