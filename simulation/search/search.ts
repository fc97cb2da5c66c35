/**
 * Goes through every state that a small world can reach, breadth first: the first violation that it
 * meets has a shortest trace. It knows nothing of locks; a world brings its own moves and rules.
 *
 * A state counts as seen when its key was seen. Of a key only 53 bits are kept, so two keys may
 * collide, and the second state is left out: with a million states that happens in one run of ten
 * thousand.
 */

/** One step from a state to the next, and what happens in it. */
export interface Move<State> {
  readonly label: string;
  readonly next: State;
}

export interface World<State> {
  readonly start: State;
  /** Everything that may happen next, always in the same order. */
  moves(state: State): readonly Move<State>[];
  /** Equal for two states only if no rule tells one from the other. */
  keyOf(state: State): string;
  wrongIn(state: State): string | null;
  /** The ways in which everything may calm down from here: what is lost, and what comes. */
  calmFrom(state: State): readonly Move<State>[];
  /** The next step of a world that nothing disturbs any more; null when it is at rest. */
  calm(state: State): Move<State> | null;
  wrongAtRest(state: State): string | null;
}

export interface Violation {
  readonly message: string;
  /** The labels of the moves that lead there. */
  readonly trace: readonly string[];
}

export interface Found {
  readonly states: number;
  readonly transitions: number;
  /** How many moves the longest of all paths has. */
  readonly depth: number;
  /** Whether no state was left to go on from. */
  readonly isExhausted: boolean;
  readonly violation: Violation | null;
}

/** A calm world that takes more steps than this never comes to rest. */
const MAX_CALM_STEPS = 400;
/** So many of its steps show why. */
const SHOWN_STEPS = 40;

export function search<State>(world: World<State>, deepest: number): Found {
  return new Search(world).run(deepest);
}

interface Node<State> {
  readonly number: number;
  readonly state: State;
}

class Search<State> {
  readonly #world: World<State>;
  readonly #seen = new Set<number>();
  /** States from which a calm world is known to come to rest with nothing wrong. */
  readonly #calm = new Set<number>();
  /** For each state by its number: the state before it, and which of that one's moves led here. */
  readonly #parents: number[] = [-1];
  readonly #choices: number[] = [-1];
  #transitions = 0;

  constructor(world: World<State>) {
    this.#world = world;
  }

  run(deepest: number): Found {
    const { start } = this.#world;
    this.#seen.add(hashOf(this.#world.keyOf(start)));
    let frontier: Node<State>[] = [{ number: 0, state: start }];
    let violation = this.#judge(start, 0);
    let depth = 0;
    while (!violation && frontier.length > 0 && depth < deepest) {
      const next: Node<State>[] = [];
      for (const node of frontier) {
        violation = this.#expand(node, next);
        if (violation) break;
      }
      if (next.length > 0) depth += 1;
      frontier = next;
    }
    return {
      states: this.#parents.length,
      transitions: this.#transitions,
      depth,
      isExhausted: !violation && frontier.length === 0,
      violation,
    };
  }

  #expand({ number, state }: Node<State>, next: Node<State>[]): Violation | null {
    for (const [choice, move] of this.#world.moves(state).entries()) {
      this.#transitions += 1;
      const key = hashOf(this.#world.keyOf(move.next));
      if (this.#seen.has(key)) continue;
      this.#seen.add(key);
      const node = { number: this.#parents.length, state: move.next };
      this.#parents.push(number);
      this.#choices.push(choice);
      const violation = this.#judge(move.next, node.number);
      if (violation) return violation;
      next.push(node);
    }
    return null;
  }

  #judge(state: State, number: number): Violation | null {
    const message = this.#world.wrongIn(state);
    if (message !== null) return { message, trace: this.#traceTo(number) };
    for (const begin of this.#world.calmFrom(state)) {
      const labels = [begin.label];
      const wrong = this.#settle(begin.next, labels);
      if (wrong === null) continue;
      return {
        message: wrong,
        trace: [...this.#traceTo(number), ...labels.slice(0, SHOWN_STEPS)],
      };
    }
    return null;
  }

  /** Lets the world go on undisturbed, up to its rest or to a state whose rest is known. */
  #settle(from: State, labels: string[]): string | null {
    const passed: number[] = [];
    let state = from;
    for (;;) {
      const key = hashOf(this.#world.keyOf(state));
      if (this.#calm.has(key)) break;
      passed.push(key);
      const message = this.#world.wrongIn(state);
      if (message !== null) return message;
      if (passed.length > MAX_CALM_STEPS) return "The world never comes to rest.";
      const move = this.#world.calm(state);
      if (!move) {
        const wrong = this.#world.wrongAtRest(state);
        if (wrong !== null) return wrong;
        break;
      }
      labels.push(move.label);
      state = move.next;
    }
    for (const key of passed) this.#calm.add(key);
    return null;
  }

  /** Only the choices are kept: the labels come from playing them again. */
  #traceTo(number: number): string[] {
    const choices: number[] = [];
    for (let at = number; at > 0; at = this.#parents[at] ?? 0) {
      choices.unshift(this.#choices[at] ?? 0);
    }
    let state = this.#world.start;
    return choices.map((choice) => {
      const move = this.#world.moves(state)[choice] as Move<State>;
      state = move.next;
      return move.label;
    });
  }
}

/** 53 bits of a text: two multiplicative hashes, side by side. */
function hashOf(text: string): number {
  let [high, low] = [0xdeadbeef, 0x41c6ce57];
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    high = Math.imul(high ^ code, 2654435761);
    low = Math.imul(low ^ code, 1597334677);
  }
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909);
  low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909);
  return 4294967296 * (2097151 & low) + (high >>> 0);
}
