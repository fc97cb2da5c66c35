/** The group of a lock, by its name: a label of metrics. There must be few groups. */
export type Grouping = (name: string) => string;

/** Every group costs memory here and in the server of the metrics, forever. */
const MAX_GROUPS = 1_000;

/** Stands for the groups beyond the limit, and for names that have no group. */
const OTHER = "other";

/** The groups that a function of the user makes, few enough to be labels. */
export class Groups {
  readonly #groupOf: Grouping;
  readonly #known = new Set<string>();

  constructor(groupOf: Grouping) {
    this.#groupOf = groupOf;
  }

  of(name: string): string {
    const group = this.#asked(name);
    if (this.#known.has(group)) return group;
    if (this.#known.size >= MAX_GROUPS) return OTHER;
    this.#known.add(group);
    return group;
  }

  /** An error here would end the process: it is thrown in a subscriber of a channel. */
  #asked(name: string): string {
    try {
      const group: unknown = this.#groupOf(name);
      return typeof group === "string" && group !== "" ? group : OTHER;
    } catch {
      return OTHER;
    }
  }
}
