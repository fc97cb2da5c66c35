/** The questions for a reader of docs/benchmarks.md, those that most ask first. */

interface Meaning {
  /** Its name in the summary. */
  readonly short: string;
  /** The use of its figure. */
  readonly text: string;
}

const UNCONTENDED =
  "A request that takes one lock, does its work and releases the lock pays this price. It is " +
  "mostly small beside the work and a real network, which this machine does not have.";
const HANDOFF =
  "A busy lock lies idle for this time between two holders, so it bounds how often such a lock " +
  "can change hands.";
const CONTENTION =
  "This is the most that a hot lock gives: a counter, a stock, an account that all processes " +
  "want. The longest wait and the Jain index (1 is even) say whether a worker starves.";
const MEMORY = "Multiply it by the number of locks or waiters that you expect at a time.";
const GROWTH = "A lock that is fast alone must not become slow in a crowd.";

const MEANINGS: Readonly<Record<string, Meaning>> = {
  uncontended: { short: "acquire and release", text: UNCONTENDED },
  "uncontended-relaxed": {
    short: "acquire and release, no wait for the disk",
    text: UNCONTENDED,
  },
  handoff: { short: "handoff to another process", text: HANDOFF },
  "handoff-relaxed": { short: "handoff, no wait for the disk", text: HANDOFF },
  "one-name": { short: "one busy name", text: CONTENTION },
  contention: { short: "one busy name", text: CONTENTION },
  "many-names": {
    short: "many names at once",
    text: "A batch job or a busy server gains this when it takes many locks in the same moment.",
  },
  cluster: {
    short: "many names at once, in a Cluster",
    text:
      "Names are spread over the shards of a Cluster, and each shard gets its own batch. Here " +
      "all shards share one machine, so it shows the price of the smaller batches, not the " +
      "gain of more servers.",
  },
  replicas: {
    short: "with a replica",
    text: "It is the price of a lock that a failover does not forget, for one task.",
  },
  "replicas-names": {
    short: "with a replica, many names at once",
    text: "It is the same price where many tasks lock at once: they share it.",
  },
  crash: {
    short: "after a crash of the holder",
    text:
      "Users wait for this time after a process was killed: the ttl, and the delay that the " +
      "package adds. A shorter ttl shortens it.",
  },
  "one-stopped": {
    short: "while a server hangs",
    text: "A server that hangs must not slow down locks that the others can grant.",
  },
  footprint: { short: "memory for each lock", text: MEMORY },
  "footprint-held": { short: "memory for each held lock", text: MEMORY },
  "footprint-waiting": { short: "memory for each waiter", text: MEMORY },
  "held-leases": {
    short: "many held locks",
    text: "A process may hold very many locks: none is lost, and few messages are sent.",
  },
  "million-leases": {
    short: "a million held locks",
    text: "It shows how far one server and a few processes go.",
  },
  "growth-names": { short: "beside many names", text: GROWTH },
  "growth-clients": { short: "beside many clients", text: GROWTH },
  "growth-processes": { short: "with more processes", text: GROWTH },
  waiters: { short: "requests with many waiters", text: GROWTH },
  crowd: {
    short: "in a crowd",
    text: `${GROWTH} Redis runs one command at a time: a slow one delays all clients.`,
  },
  calls: {
    short: "messages for a lock",
    text: "Messages cost money between zones, and time everywhere.",
  },
  commands: {
    short: "commands with many waiters",
    text:
      "Packages that poll send commands for each waiter all the time; Holdfast sends them at a " +
      "handoff.",
  },
  "start-up": {
    short: "a program with one lock",
    text: "It matters to short programs: jobs, commands, functions.",
  },
  thread: {
    short: "renewal from a thread",
    text: "It is the price of leases that a blocked event loop does not lose.",
  },
  subscribers: {
    short: "with metrics",
    text: "Metrics and traces add this to each lock.",
  },
};

export function meaningOf(question: string): string {
  return MEANINGS[question]?.text ?? "";
}

/** The name of a question in the summary. */
export function shortOf(question: string): string {
  return MEANINGS[question]?.short ?? question;
}

/** The place of a question among those of its store. */
export function placeOf(question: string): number {
  return Object.keys(MEANINGS).indexOf(question);
}
