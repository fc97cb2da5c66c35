/** How many nodes make a majority. Any two majorities of the same nodes share a node. */
export function majorityOf(nodes: number): number {
  // rule: majority-of-all-nodes
  return Math.floor(nodes / 2) + 1;
}

/** Whether too many nodes refuse for the others to be a majority. */
export function preventsMajority(refusals: number, nodes: number): boolean {
  return refusals > nodes - majorityOf(nodes);
}

/** The highest value that a majority of the nodes reaches. `values` may leave out nodes. */
export function reachedByMajority(values: readonly number[], nodes: number): number {
  const majority = majorityOf(nodes);
  let highest = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    let reached = 0;
    for (const other of values) if (other >= value) reached += 1;
    // rule: deadline-of-a-majority
    if (reached >= majority) highest = Math.max(highest, value);
  }
  return highest;
}

/** The earliest moment at which a majority is ready, from the moment at which each node is. */
export function majorityReadyAt(moments: readonly number[]): number {
  const earliestFirst = moments.toSorted((a, b) => a - b);
  return earliestFirst[majorityOf(moments.length) - 1] ?? Number.POSITIVE_INFINITY;
}

/**
 * Counts the answers of one question to all nodes. `undefined` stands for a node whose answer is
 * still open: it may say anything.
 */
export class Tally<Answer extends { readonly type: string }> {
  readonly #answers: readonly (Answer | undefined)[];

  constructor(answers: readonly (Answer | undefined)[]) {
    this.#answers = answers;
  }

  /** Whether a node has not answered yet. */
  get isOpen(): boolean {
    return this.#answers.includes(undefined);
  }

  count(...types: readonly Answer["type"][]): number {
    let count = 0;
    for (const answer of this.#answers) if (answer && types.includes(answer.type)) count += 1;
    return count;
  }

  /** A majority gave one of these answers: certain, whatever the open nodes say. */
  isMajority(...types: readonly Answer["type"][]): boolean {
    return this.count(...types) >= majorityOf(this.#answers.length);
  }

  /** These answers are a majority, or become one if every open node gives one of them. */
  mayBeMajority(...types: readonly Answer["type"][]): boolean {
    let open = 0;
    for (const answer of this.#answers) if (answer === undefined) open += 1;
    return this.count(...types) + open >= majorityOf(this.#answers.length);
  }

  /** So many gave one of these answers that no majority of others is left: a certain refusal. */
  preventsMajority(...types: readonly Answer["type"][]): boolean {
    return preventsMajority(this.count(...types), this.#answers.length);
  }
}
