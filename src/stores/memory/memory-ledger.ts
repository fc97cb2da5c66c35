import { apply } from "../../rules/ledger.js";
import type { Command, Emit, Instant, ReplyTo, View } from "../../rules/ledger-command.js";
import { compareNames } from "../../rules/name.js";
import { SingleMap } from "../../rules/single-map.js";
import type { Upkeep } from "../../rules/upkeep.js";
import { MemoryState, type TokenCounter } from "./memory-state.js";

const MIN_SWEEP = 1_000;

/** All names of one namespace in memory. A name that is at rest takes no room. */
export class MemoryLedger {
  #states = new SingleMap<string, MemoryState>();
  readonly #tokens: TokenCounter = { last: 0 };
  readonly #emit: Emit;
  /** How many names there may be until those out of use are looked for. */
  #sweepAt = MIN_SWEEP;

  constructor(emit: Emit) {
    this.#emit = emit;
  }

  get size(): number {
    return this.#states.size;
  }

  /** Commands of one batch share an upkeep; without one, each is a batch of its own. */
  execute<C extends Command>(command: C, at: Instant, upkeep?: Upkeep): ReplyTo<C> {
    const known = this.#states.get(command.key);
    const state = known ?? new MemoryState(command.key, this.#tokens);
    const reply = apply(state, command, at, this.#emit, upkeep);
    if (state.isEmpty) {
      if (known) this.#states.delete(command.key);
    } else if (!known) {
      this.#states.set(command.key, state);
      if (this.#states.size >= this.#sweepAt) this.#sweep(at);
    }
    return reply as ReplyTo<C>;
  }

  /** The names that begin with a prefix and are in use, in the order of their bytes. */
  list(prefix: string, at: Instant): { key: string; view: View }[] {
    return this.#keys()
      .filter((key) => key.startsWith(prefix))
      .sort(compareNames)
      .map((key) => ({ key, view: this.execute({ type: "inspect", key }, at) }))
      .filter(({ view }) => view.holders.length + view.waiters.length > 0 || view.mark !== null);
  }

  /**
   * An expired mark is dropped when its name is asked for; the name of a `once` may never be asked
   * for again.
   */
  #sweep(at: Instant): void {
    for (const key of this.#keys()) this.execute({ type: "inspect", key }, at);
    this.#sweepAt = Math.max(MIN_SWEEP, 2 * this.#states.size);
  }

  #keys(): string[] {
    return Array.from(this.#states.values(), ({ key }) => key);
  }

  /** Forgets everything, as a server that restarts without its data. */
  forget(): void {
    this.#states = new SingleMap();
    this.#tokens.last = 0;
  }
}
