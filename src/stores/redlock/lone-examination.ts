import {
  type Check,
  checksOver,
  danger,
  type FailureCase,
  note,
  ok,
  warning,
} from "../../contract/examination.js";
import { CLIENT_FAILURES, seconds, twoHolders } from "../doctor.js";
import type { RedlockFacts } from "./redlock-facts.js";

const check = checksOver<RedlockFacts>();

/** The checks of a server, or a Cluster, that decides alone. */
export const loneChecks: readonly Check<RedlockFacts>[] = [
  check("redlock/scripts", ["nodes"], ({ nodes: [node] }) => {
    if (node?.survey) return ok("The server runs the script of the store.");
    return danger(
      "The server does not run the script of the store.",
      "No lock can be taken.",
      "Grant the rights of the ACL line in docs/stores/redlock.md.",
    );
  }),

  check("redlock/start", ["nodes", "terms"], ({ nodes: [node], terms: { startDelayMs } }) => {
    if (startDelayMs > 0) {
      return ok(`After a start, the server gives out no lock for ${startDelayMs} ms.`);
    }
    if (node?.info?.get("aof_enabled") === "1") return ok("The server writes its keys to a file.");
    return note(
      "A server that restarts without its keys gives out locks at once.",
      "The holders from before the restart believe in their leases until their next renewal.",
      'Set bootstrap: "wait", switch on appendonly, or check tokens where you write.',
    );
  }),

  check("redlock/round-trip", ["nodes", "terms"], ({ nodes: [node], terms }, ttlMs) => {
    const limitMs = Math.min(terms.nodeTimeoutMs, ttlMs / 5);
    const slowestMs = Math.ceil(node?.roundTrip?.slowestMs ?? 0);
    const seen = `The server has ${Math.round(limitMs)} ms to answer, and took ${slowestMs} ms.`;
    if (slowestMs <= limitMs) return ok(seen);
    const why = "A first round without an answer is given back, and asked again with more time.";
    return warning(seen, why, "Raise nodeTimeoutMs, or choose a longer ttlMs.");
  }),
];

/** The failure cases of a server, or a Cluster, that decides alone. */
export function loneFailureCases({ terms }: RedlockFacts, ttlMs: number): FailureCase[] {
  const two = twoHolders(ttlMs);
  const { startDelayMs } = terms;
  return [
    ...CLIENT_FAILURES,
    {
      event: "The server fails",
      outcome: "Locks stop, and leases end at their deadlines.",
      isSafe: true,
    },
    {
      event: "The server restarts without its keys",
      outcome:
        startDelayMs > 0
          ? `Locks are kept: the server gives out none for ${seconds(startDelayMs)}.`
          : `Locks are given out again at once: ${two}.`,
      isSafe: startDelayMs > 0,
    },
    {
      event: "A replica that lacks the last writes becomes master",
      outcome: `Locks that it lacks are given out again: ${two}.`,
      isSafe: false,
    },
    {
      event: "The clock of the server jumps ahead",
      outcome: `Leases end early there: ${two}.`,
      isSafe: false,
    },
  ];
}
