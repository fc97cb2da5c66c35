/** Whether the runs of a trial agree: how often each verdict was seen. */
import type { Sighting } from "./run-log.js";

export interface Agreement {
  /** Of the first and the last trial, as ISO 8601. */
  readonly from: string;
  readonly to: string;
  /** By `SUBJECT FAULT`: how often each verdict was seen. */
  readonly verdicts: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

export function agreementOf(sightings: readonly Sighting[]): Agreement {
  const verdicts: Record<string, Record<string, number>> = {};
  for (const { subject, fault, kind } of sightings) {
    const id = `${subject} ${fault}`;
    const counts = verdicts[id] ?? {};
    verdicts[id] = { ...counts, [kind]: (counts[kind] ?? 0) + 1 };
  }
  const times = sightings.map(({ startedAt }) => startedAt).sort();
  return { from: times[0] ?? "", to: times.at(-1) ?? "", verdicts };
}

export interface Score {
  /** How many runs had the verdict that most runs had. */
  readonly same: number;
  /** How many runs had each verdict. */
  readonly counts: Readonly<Record<string, number>>;
  readonly runs: number;
  /** `19 × held, 1 × stuck`, the most frequent first. */
  readonly text: string;
}

/** Null where the trial was not repeated. */
export function scoreOf(
  { verdicts }: Agreement,
  { subject, fault }: Pick<Sighting, "subject" | "fault">,
): Score | null {
  const counts = verdicts[`${subject} ${fault}`] ?? {};
  const ranked = Object.entries(counts).sort(([, one], [, other]) => other - one);
  const runs = ranked.reduce((sum, [, count]) => sum + count, 0);
  if (runs < 2) return null;
  const text = ranked.map(([kind, count]) => `${count} × ${kind}`).join(", ");
  return { same: ranked[0]?.[1] ?? 0, counts, runs, text };
}

export interface Summary {
  readonly trials: number;
  /** The trials whose runs had one verdict. */
  readonly agreed: number;
  readonly fewestRuns: number;
  /** The other trials: `SUBJECT FAULT` and the verdicts. */
  readonly divided: readonly (readonly [id: string, text: string])[];
}

/** Of all trials that were repeated. `isMeant`: of which subjects; default, of all. */
export function summaryOf(
  agreement: Agreement,
  isMeant: (subject: string) => boolean = () => true,
): Summary {
  const scores = Object.keys(agreement.verdicts).flatMap((id) => {
    const [subject = "", fault = ""] = id.split(" ");
    if (!isMeant(subject)) return [];
    const score = scoreOf(agreement, { subject, fault });
    return score ? [{ id, ...score }] : [];
  });
  const divided = scores.filter(({ same, runs }) => same < runs);
  return {
    trials: scores.length,
    agreed: scores.length - divided.length,
    fewestRuns: scores.length === 0 ? 0 : Math.min(...scores.map(({ runs }) => runs)),
    divided: divided.map(({ id, text }) => [id, text]),
  };
}
