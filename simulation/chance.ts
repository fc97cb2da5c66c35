/**
 * Random numbers of a seed: the same seed and label draw the same numbers. Every part of a
 * simulation has a label of its own, so that one more draw in one part does not change the others.
 */
export class Chance {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number, label: string) {
    let hash = 2_166_136_261;
    for (const unit of `${seed}/${label}`) {
      hash = Math.imul(hash ^ (unit.codePointAt(0) ?? 0), 16_777_619);
    }
    this.#a = hash | 0;
    this.#b = Math.imul(hash, 0x9e3779b1) | 0;
    this.#c = seed | 0;
    for (let round = 0; round < 12; round += 1) this.#next();
  }

  /** A number in [0, 1). */
  fraction(): number {
    return this.#next() / 2 ** 32;
  }

  isLucky(probability: number): boolean {
    return this.fraction() < probability;
  }

  between(low: number, high: number): number {
    return low + (high - low) * this.fraction();
  }

  /** As `between`, but small values are as likely as large ones, by their order of magnitude. */
  spread(low: number, high: number): number {
    return low * (high / low) ** this.fraction();
  }

  /** A whole number from `low` to `high`, both included. */
  whole(low: number, high: number): number {
    return low + Math.floor(this.fraction() * (high - low + 1));
  }

  pick<T>(values: readonly T[]): T {
    return values[Math.floor(this.fraction() * values.length)] as T;
  }

  /** One of the keys, each as likely as its weight says. */
  weigh<K extends string>(weights: Readonly<Record<K, number>>): K {
    const entries = Object.entries(weights) as [K, number][];
    let rest = this.fraction() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [key, weight] of entries) {
      rest -= weight;
      if (rest < 0) return key;
    }
    return (entries.at(-1) as [K, number])[0];
  }

  /** The generator sfc32: small and fast, and its numbers are good enough for a simulation. */
  #next(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    this.#c |= 0;
    return sum >>> 0;
  }
}
