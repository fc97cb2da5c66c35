import type { Facts, FailureCase } from "../../contract/examination.js";
import { CLIENT_FAILURES, known, twoHolders } from "../doctor.js";
import { type Persistence, replicasIn } from "../redis-client/server-facts.js";
import type { MasterFacts } from "./redis-facts.js";

type Known = Facts<MasterFacts>;

/** The failure cases of a server with these facts. */
export function redisFailureCases(facts: Known, ttlMs: number): FailureCase[] {
  const two = twoHolders(ttlMs);
  return [
    ...CLIENT_FAILURES,
    restart(known(facts.persistence), two),
    crash(known(facts.persistence), two),
    failover(facts, two),
    fullMemory(facts, two),
    {
      event: "The clock of the server jumps ahead",
      outcome: `Leases end early: ${two}.`,
      isSafe: false,
    },
  ];
}

function restart(persistence: Persistence | undefined, two: string): FailureCase {
  const event = "The server restarts";
  if (persistence === undefined) return unknown(event);
  if (persistence.hasAppendOnlyFile) {
    return { event, outcome: "Locks are kept by the append-only file.", isSafe: true };
  }
  const lost = persistence.hasSnapshots === false ? "All locks" : "Locks since the last snapshot";
  return { event, outcome: `${lost} are forgotten: ${two}.`, isSafe: false };
}

function crash(persistence: Persistence | undefined, two: string): FailureCase {
  const event = "The machine of the server crashes";
  if (persistence === undefined) return unknown(event);
  const { hasAppendOnlyFile, fsync } = persistence;
  if (hasAppendOnlyFile && fsync === "always") {
    return { event, outcome: "Locks are kept: each is on the disk.", isSafe: true };
  }
  const lost =
    hasAppendOnlyFile && fsync === "everysec"
      ? "Locks of the last second"
      : "Locks that were not on the disk";
  return { event, outcome: `${lost} are forgotten: ${two}.`, isSafe: false };
}

function failover({ info, use }: Known, two: string): FailureCase {
  const event = "A replica takes over";
  const [fields, terms] = [known(info), known(use)];
  if (!fields || !terms) return unknown(event);
  const count = replicasIn(fields).length;
  const { replicas } = terms;
  if (count === 0) {
    const outcome = "There is no replica: while the server is away, leases end at their deadlines.";
    return { event, outcome, isSafe: true };
  }
  if (replicas >= count) {
    return { event, outcome: "Locks are kept: every replica has each of them.", isSafe: true };
  }
  const which = replicas > 0 ? `, unless it is one of the ${replicas} that had them` : "";
  const outcome = `Grants that it had not received are forgotten: ${two}${which}.`;
  return { event, outcome, isSafe: false };
}

function fullMemory({ info }: Known, two: string): FailureCase {
  const event = "The memory of the server is full";
  const fields = known(info);
  if (!fields) return unknown(event);
  if (fields.get("maxmemory_policy") === "noeviction") {
    const outcome = "New locks are refused; held ones are renewed and released.";
    return { event, outcome, isSafe: true };
  }
  return { event, outcome: `Locks may be evicted: ${two}.`, isSafe: false };
}

function unknown(event: string): FailureCase {
  return { event, outcome: "Not known: the settings could not be read.", isSafe: false };
}
