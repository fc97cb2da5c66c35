/** The figures of one round of one contestant; `value` is the one that is compared. */
export interface Sample {
  readonly value: number;
  readonly more?: Readonly<Record<string, number>>;
}

export interface Contestant {
  readonly name: string;
  /**
   * `floor`: the raw operations that no lock can do without. `foreign`: in another language, where
   * the raw operations cost something else, too.
   */
  readonly role: "holdfast" | "peer" | "floor" | "foreign" | "foreign floor";
  /** The name of its own floor, where that is not the floor of the question. */
  readonly floor?: string;
  /** Why it cannot take part on this machine; it has no rounds then. */
  readonly skipped?: string;
  /** Runs one round; a throw, or a broken exclusion, takes the contestant out of the table. */
  round(): Promise<Sample>;
  close?(): Promise<void>;
}

/** One demand, answered by the figures of one run. */
export interface Goal {
  readonly text: string;
  readonly value: number;
  readonly isMet: boolean;
}

/** A question, the contestants that answer it, and the goals. */
export interface Question {
  readonly store: string;
  readonly name: string;
  readonly title: string;
  /** A sentence for the reader of the report: the work, and its purpose. */
  readonly about: string;
  readonly unit: string;
  readonly better: "lower" | "higher";
  readonly rounds: number;
  /** Each round starts processes of its own: there is nothing that a first round could warm up. */
  readonly startsFresh?: boolean;
  /** Left out of a quick look, unless it was asked for by its name. */
  readonly takesLong?: boolean;
  /** Runs only when it was asked for by its name: it takes minutes and much of the machine. */
  readonly isOnDemand?: boolean;
  /** Why a goal is missed, where that is known. */
  readonly reason?: string;
  contestants(isQuick: boolean): Promise<readonly Contestant[]>;
  /** Contestants in other languages, after the others were opened. */
  foreign?(isQuick: boolean): Promise<readonly Contestant[]>;
  goals(of: (name: string) => Standing, standings: readonly Standing[]): readonly Goal[];
  close?(): Promise<void>;
}

/** A contestant after all rounds. */
export interface Standing {
  readonly name: string;
  readonly role: Contestant["role"];
  readonly floor?: string;
  readonly samples: readonly Sample[];
  readonly median: number;
  /** Half of the middle half of all rounds, as a part of the median. */
  readonly spread: number;
  readonly more: Readonly<Record<string, number>>;
  /** Why it has no figures. */
  readonly failure: string | null;
  /** It did not fail: it could not take part. */
  readonly isSkipped?: true;
}

/**
 * Runs all contestants in turn, round by round: what disturbs the machine for a while disturbs all
 * of them. Each round has another order, so that none always comes behind the same one: the state
 * that one leaves, of caches and of the heap, is a part of the next one's figure. The first round
 * warms up and does not count; a quick look has only one that does.
 */
export async function contest(
  question: Question,
  { isQuick, hasLanguages = false }: { isQuick: boolean; hasLanguages?: boolean },
  onProgress: (text: string) => void,
): Promise<readonly Standing[]> {
  let contestants: readonly Contestant[] = [];
  try {
    contestants = await question.contestants(isQuick);
    if (hasLanguages && question.foreign) {
      contestants = [...contestants, ...(await question.foreign(isQuick))];
    }
    return await inTurns(question, contestants, isQuick, onProgress);
  } finally {
    for (const contestant of contestants) await contestant.close?.().catch(() => {});
    await question.close?.();
  }
}

async function inTurns(
  question: Question,
  contestants: readonly Contestant[],
  isQuick: boolean,
  onProgress: (text: string) => void,
): Promise<readonly Standing[]> {
  const samples = new Map<string, Sample[]>(contestants.map(({ name }) => [name, []]));
  const failures = new Map<string, string>();
  for (const { name, skipped } of contestants) if (skipped) failures.set(name, skipped);
  const rounds = isQuick ? 1 : question.rounds;
  for (let round = question.startsFresh ? 1 : 0; round <= rounds; round += 1) {
    for (const contestant of inOrder(contestants, round)) {
      const { name } = contestant;
      if (failures.has(name)) continue;
      onProgress(round === 0 ? `warming up ${name}` : `round ${round} of ${rounds}: ${name}`);
      try {
        const sample = await contestant.round();
        if (round > 0) samples.get(name)?.push(sample);
      } catch (error) {
        failures.set(name, error instanceof Error ? error.message : String(error));
      }
    }
  }
  return contestants.map((contestant) => {
    const { name } = contestant;
    return standing(contestant, samples.get(name) ?? [], failures.get(name) ?? null);
  });
}

/** All of them, from another one on and in other steps in each round. */
export function inOrder<T>(all: readonly T[], round: number): T[] {
  const steps = all.map((_, at) => at + 1).filter((step) => divisor(step, all.length) === 1);
  const step = steps[round % steps.length] ?? 1;
  return all.map((_, turn) => all[(round + turn * step) % all.length] as T);
}

/** The greatest common divisor. */
function divisor(one: number, other: number): number {
  return other === 0 ? one : divisor(other, one % other);
}

function standing(
  { name, role, floor, skipped }: Omit<Contestant, "round">,
  samples: readonly Sample[],
  failure: string | null,
): Standing {
  const values = samples.map((sample) => sample.value);
  const middle = median(values);
  const more: Record<string, number> = {};
  for (const key of Object.keys(samples[0]?.more ?? {})) {
    more[key] = median(samples.map((sample) => sample.more?.[key] ?? Number.NaN));
  }
  const spread = (quantile(values, 0.75) - quantile(values, 0.25)) / 2 / middle;
  const own = {
    ...(floor === undefined ? {} : { floor }),
    ...(skipped === undefined ? {} : { isSkipped: true as const }),
  };
  return { name, role, ...own, samples, median: middle, spread, more, failure };
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** NaN when there is nothing to choose from. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const place = (sorted.length - 1) * part;
  const low = sorted[Math.floor(place)] ?? Number.NaN;
  const high = sorted[Math.ceil(place)] ?? low;
  return low + (high - low) * (place - Math.floor(place));
}

/** The best contestant of a role among those that finished; of NaN when there is none. */
export function bestOf(
  role: Contestant["role"],
  better: "lower" | "higher",
  standings: readonly Standing[],
): Standing {
  const sign = better === "lower" ? 1 : -1;
  const finished = standings.filter((one) => one.role === role && one.failure === null);
  const [best] = finished.sort((a, b) => sign * (a.median - b.median));
  return best ?? standing({ name: "none", role }, [], null);
}
