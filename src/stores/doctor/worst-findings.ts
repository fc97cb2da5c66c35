import type { Finding, Severity, Survival } from "../../contract/examination.js";

/** The findings about one of several servers. */
export interface ServerFindings {
  readonly server: string;
  readonly findings: readonly Finding[];
}

const ORDER: readonly Severity[] = ["ok", "skipped", "note", "warning", "danger"];

/** One finding for each check: the worst of all servers, and where it was found. */
export function worstFindings(all: readonly ServerFindings[]): Finding[] {
  if (all.length === 1) return [...(all[0]?.findings ?? [])];
  const ids = new Set(all.flatMap(({ findings }) => findings.map(({ id }) => id)));
  return [...ids].flatMap((id) => {
    const found = all.flatMap(({ server, findings }) => {
      return findings.filter((one) => one.id === id).map((finding) => ({ server, finding }));
    });
    const [worst] = found.toSorted((a, b) => rank(b.finding) - rank(a.finding));
    if (!worst) return [];
    const { finding } = worst;
    const where = found.filter((one) => one.finding.severity === finding.severity);
    const servers = where.map(({ server }) => server).join(", ");
    return [{ ...finding, what: `${finding.what} (${servers})` }];
  });
}

function rank({ severity }: Finding): number {
  return ORDER.indexOf(severity);
}

/** One survival for each event: the first that is not safe at a server, else that of the first. */
export function worstSurvivals(all: readonly (readonly Survival[])[]): Survival[] {
  const [first = []] = all;
  return first.map((survival) => {
    const others = all.flatMap((list) => list.filter(({ event }) => event === survival.event));
    return others.find(({ isSafe }) => !isSafe) ?? survival;
  });
}
