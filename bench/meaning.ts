/** The meaning of each question for a reader of docs/benchmarks.md, those that most ask first. */

const UNCONTENDED =
  "It is what a request pays that takes one lock, does its work and gives it back. Beside the " +
  "work and a network it is mostly small.";
const HANDOFF =
  "It is how long a busy lock lies idle between two holders, so it bounds how often such a lock " +
  "can change hands.";
const CONTENTION =
  "It is what a hot lock gives you: a counter, a stock, an account that all want. The longest " +
  "wait and the Jain index (1 is even) say whether a worker starves.";
const MANY_NAMES =
  "It is what a batch job or a busy server gains when many locks are taken in the same moment.";
const MEMORY = "Multiply it by the number of locks or waiters that you expect at a time.";
const GROWTH = "A lock that is fast alone must not become slow in a crowd.";

const MEANINGS: Readonly<Record<string, string>> = {
  uncontended: UNCONTENDED,
  "uncontended-relaxed": UNCONTENDED,
  handoff: HANDOFF,
  "handoff-relaxed": HANDOFF,
  "one-name": CONTENTION,
  contention: CONTENTION,
  "many-names": MANY_NAMES,
  replicas: "It is the price of a lock that a failover does not forget, for one task.",
  "replicas-names": "It is the same price where many tasks lock at once: they share it.",
  crash:
    "It is how long users wait after a process was killed: the ttl, and what the package adds. " +
    "A shorter ttl shortens it.",
  "one-stopped": "A server that hangs must not slow down locks that the others can grant.",
  footprint: MEMORY,
  "footprint-held": MEMORY,
  "footprint-waiting": MEMORY,
  "held-leases": "A process may hold very many locks: none is lost, and few messages are sent.",
  "million-leases": "It shows how far one server and a few processes go.",
  "growth-names": GROWTH,
  "growth-processes": GROWTH,
  waiters: GROWTH,
  crowd: `${GROWTH} All others wait while Redis runs a command.`,
  calls: "Messages cost money between zones, and time everywhere.",
  commands: "Packages that poll pay for each waiter all the time; here a handoff is all there is.",
  "start-up": "It matters to short programs: jobs, commands, functions.",
  thread: "It is what leases cost that a blocked event loop does not lose.",
  subscribers: "It is what metrics and traces add to each lock.",
};

export function meaningOf(question: string): string {
  return MEANINGS[question] ?? "";
}

/** The place of a question among those of its store. */
export function placeOf(question: string): number {
  return Object.keys(MEANINGS).indexOf(question);
}
