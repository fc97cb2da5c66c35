import { apply } from "../../rules/ledger.js";
import type { Command, Emit, Instant, ReplyTo, View } from "../../rules/ledger-command.js";
import { MemoryState, type TokenCounter } from "./memory-state.js";

/** All names of one namespace in memory. A name that is at rest takes no room. */
export class MemoryLedger {
  readonly #states = new Map<string, MemoryState>();
  readonly #tokens: TokenCounter = { last: 0 };
  readonly #emit: Emit;

  constructor(emit: Emit) {
    this.#emit = emit;
  }

  get size(): number {
    return this.#states.size;
  }

  execute<C extends Command>(command: C, at: Instant): ReplyTo<C> {
    const known = this.#states.get(command.key);
    const state = known ?? new MemoryState(command.key, this.#tokens);
    const reply = apply(state, command, at, this.#emit);
    if (state.isEmpty) {
      if (known) this.#states.delete(command.key);
    } else if (!known) this.#states.set(command.key, state);
    return reply as ReplyTo<C>;
  }

  /** The names that begin with a prefix and are in use, in the order of their bytes. */
  list(prefix: string, at: Instant): { key: string; view: View }[] {
    const keys = [...this.#states.keys()].filter((key) => key.startsWith(prefix)).sort();
    return keys
      .map((key) => ({ key, view: this.execute({ type: "inspect", key }, at) }))
      .filter(({ view }) => view.holders.length + view.waiters.length > 0 || view.mark !== null);
  }

  /** Forgets everything, as a server that restarts without its data. */
  forget(): void {
    this.#states.clear();
    this.#tokens.last = 0;
  }
}
