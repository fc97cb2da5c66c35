import {
  type Check,
  checksOver,
  danger,
  type Examination,
  type ExamineRequest,
  type Facts,
  type FailureCase,
  note,
  ok,
  type Verdict,
  warning,
} from "../../contract/examination.js";
import { majorityOf } from "../../rules/majority.js";
import type { Runtime } from "../../time/runtime.js";
import {
  CLIENT_FAILURES,
  findingsOf,
  known,
  measureRoundTrip,
  type Reading,
  type RoundTrip,
  readFacts,
  seconds,
  twoHolders,
  worstFindings,
} from "../doctor.js";
import {
  type Fields,
  type ServerFacts,
  serverChecks,
  serverProbes,
} from "../redis-client/doctor.js";
import { quorumError } from "./errors.js";
import type { Survey } from "./membership.js";
import type { RedlockNode } from "./quorum.js";

/** A node, as far as it answered. */
export interface NodeState {
  readonly name: string;
  /** Where the client says that the node is; null where it does not. */
  readonly host: string | null;
  readonly info: Fields | null;
  readonly skewMs: number | null;
  readonly roundTrip: RoundTrip | null;
  readonly survey: Survey | null;
}

/** The state of all nodes, and the options of the store. */
export interface RedlockFacts {
  readonly nodes: readonly NodeState[];
  readonly terms: RedlockTerms;
}

export interface RedlockTerms {
  /** All nodes, as they are named in a marker. */
  readonly set: string;
  readonly nodeTimeoutMs: number;
  readonly maxTtlMs: number;
  /** One server, or one Cluster, decides alone. */
  readonly isSingleServer: boolean;
  /** A single server grants no lock for this long after its start. */
  readonly startDelayMs: number;
}

/** The parts of the store that an examination uses. */
export interface RedlockTools {
  readonly nodes: readonly RedlockNode[];
  readonly runtime: Runtime;
  readonly terms: RedlockTerms;
  /** Asks every node about itself; null for a node that did not answer. */
  survey(): Promise<readonly (Survey | null)[]>;
}

interface ReadNode {
  readonly server: string;
  readonly facts: Facts<ServerFacts & { readonly roundTrip: RoundTrip }>;
}

/** Reads all nodes at a time: a node that does not answer delays no other one. */
export async function readNodes(
  { nodes, runtime, survey }: RedlockTools,
  signal: AbortSignal,
): Promise<{ readonly states: NodeState[]; readonly read: ReadNode[] }> {
  const surveys = await survey();
  const read = await Promise.all(nodes.map((node) => readNode(node, { runtime, signal })));
  const states = nodes.map(({ name, driver }, at): NodeState => {
    const facts = read[at]?.facts;
    return {
      name,
      host: driver.servers()[0]?.host ?? null,
      info: (facts && known(facts.info)) ?? null,
      skewMs: (facts && known(facts.clock))?.skewMs ?? null,
      roundTrip: (facts && known(facts.roundTrip)) ?? null,
      survey: surveys[at] ?? null,
    };
  });
  return { states, read };
}

async function readNode({ name, driver }: RedlockNode, reading: Reading): Promise<ReadNode> {
  const [master] = await driver.masters();
  const send = (args: readonly string[]): Promise<unknown> => {
    return master ? master.send(args) : Promise.reject(new Error(`Node ${name} has no server.`));
  };
  const { runtime } = reading;
  const probes = {
    ...serverProbes({ address: name, send }, runtime),
    roundTrip: () => measureRoundTrip(runtime.clock, () => send(["time"])),
  };
  return { server: name, facts: await readFacts(probes, reading) };
}

const NOTED_SPREAD_MS = 1_000;
const WARNED_SPREAD_MS = 10_000;

const check = checksOver<RedlockFacts>();

export const redlockChecks: readonly Check<RedlockFacts>[] = [
  check("redlock/nodes", ["nodes"], ({ nodes }) => {
    const away = nodes.filter(({ info }) => info === null).map(({ name }) => name);
    if (away.length === 0) return ok(`All ${nodes.length} nodes answer.`);
    const count = `${away.length} of ${nodes.length}`;
    const seen = `Nodes that do not answer (${count}): ${away.join(", ")}.`;
    const remedy = "Bring the nodes back; a node that restarts votes again by itself.";
    if (nodes.length - away.length < majorityOf(nodes.length)) {
      return danger(seen, "No majority is left: no lock can be taken or renewed.", remedy);
    }
    return warning(seen, "Fewer nodes may fail until no majority is left.", remedy);
  }),

  check("redlock/count", ["nodes"], ({ nodes: { length } }) => {
    const endures = length - majorityOf(length);
    const seen = `Nodes: ${length}; nodes that may fail: ${endures}.`;
    if (length % 2 === 1) return ok(seen);
    const why = "An even number of nodes endures no more than the odd number below it.";
    const remedy = `Use ${length + 1} nodes.`;
    return endures === 0 ? warning(seen, why, remedy) : note(seen, why, remedy);
  }),

  check("redlock/independence", ["nodes"], ({ nodes }) => {
    const twins = ["run_id", "master_replid"].flatMap((field) =>
      shared(nodes, ({ info }) => info?.get(field) ?? null),
    );
    if (twins.length > 0) {
      return danger(
        `Nodes are the same server, or copies of one: ${twins[0]?.join(", ")}.`,
        "One server votes twice, or a replica repeats the vote of its master: no majority is one.",
        "Name one independent server for each node, without replication among them.",
      );
    }
    const [neighbours] = shared(nodes, ({ host }) => host);
    if (!neighbours) return ok("The nodes are different servers.");
    return warning(
      `Nodes run on one host: ${neighbours.join(", ")}.`,
      "One machine that fails, or whose clock jumps, takes several votes with it.",
      "Run each node on a machine of its own.",
    );
  }),

  check("redlock/markers", ["nodes", "terms"], ({ nodes, terms }) => judgeMarkers(nodes, terms)),

  check("redlock/clock-spread", ["nodes"], ({ nodes }) => {
    const skews = nodes.flatMap(({ skewMs }) => skewMs ?? []);
    const spreadMs = Math.max(...skews) - Math.min(...skews);
    if (!(spreadMs >= NOTED_SPREAD_MS)) return ok("The clocks of the nodes agree.");
    const seen = `The clocks of the nodes are ${Math.round(spreadMs / 1000)} s apart.`;
    const why = "A clock that is set right later jumps: leases on that node end early.";
    const remedy = "Run NTP on every node, and let it slew the clock instead of stepping it.";
    return spreadMs < WARNED_SPREAD_MS ? note(seen, why, remedy) : warning(seen, why, remedy);
  }),

  check("redlock/node-timeout", ["nodes", "terms"], ({ nodes, terms }, ttlMs) => {
    const limitMs = Math.min(terms.nodeTimeoutMs, ttlMs / 5);
    const slow = nodes.filter(({ roundTrip }) => (roundTrip?.slowestMs ?? 0) > limitMs);
    const names = slow.map(({ name, roundTrip }) => {
      return `${name} (${Math.ceil(roundTrip?.slowestMs ?? 0)} ms)`;
    });
    const seen = `A node has ${Math.round(limitMs)} ms to answer`;
    if (slow.length === 0) return ok(`${seen}, and all nodes are faster.`);
    const why = "A node that answers later counts as failed in that round.";
    const remedy = "Raise nodeTimeoutMs, choose a longer ttlMs, or use nodes that are nearer.";
    const found = `${seen}, and slower ones were seen: ${names.join(", ")}.`;
    const rest = nodes.length - slow.length;
    if (rest >= majorityOf(nodes.length)) return note(found, why, remedy);
    return warning(found, why, remedy);
  }),

  check("redlock/lease-length", ["terms"], ({ terms: { maxTtlMs } }, ttlMs) => {
    if (ttlMs <= maxTtlMs) return ok(`A node that restarts waits for ${maxTtlMs} ms.`);
    return note(
      `The ttl of ${ttlMs} ms is above maxTtlMs (${maxTtlMs}).`,
      "Longer leases are announced first, and a node that restarts then waits longer.",
      "Set maxTtlMs to the longest usual lease.",
    );
  }),
];

function judgeMarkers(nodes: readonly NodeState[], { set }: RedlockTerms): Verdict {
  const surveyed = nodes.flatMap(({ name, survey }) => (survey ? [{ name, ...survey }] : []));
  const foreign = surveyed.filter(({ marker }) => marker && marker.set !== set);
  if (foreign.length > 0) {
    return danger(
      `Nodes belong to another set of nodes: ${foreign.map(({ name }) => name).join(", ")}.`,
      "Processes with different sets would find different majorities; such a node does not vote.",
      "Name the same nodes in every process; docs/stores/redlock.md says how to change the set.",
    );
  }
  const silent = nodes.filter(({ info, survey }) => info !== null && survey === null);
  if (silent.length > 0) {
    return warning(
      `Nodes do not run the script of the store: ${silent.map(({ name }) => name).join(", ")}.`,
      "A node without the script does not vote.",
      "Grant the rights of the ACL line in docs/stores/redlock.md, and look for foreign data.",
    );
  }
  const young = surveyed.filter(({ marker, run, nowUs }) => {
    return !marker || marker.run !== run || marker.fromMs > nowUs / 1000;
  });
  if (young.length === 0) return ok("All nodes that answer vote.");
  return note(
    `Nodes do not vote yet: ${young.map(({ name }) => name).join(", ")}.`,
    "A node that is new or restarted waits until every lease that it may have forgotten is over.",
  );
}

/** Groups of nodes with the same value, by their names. */
function shared(
  nodes: readonly NodeState[],
  textOf: (node: NodeState) => string | null,
): string[][] {
  const groups = new Map<string, string[]>();
  for (const node of nodes) {
    const value = textOf(node);
    if (value !== null) groups.set(value, [...(groups.get(value) ?? []), node.name]);
  }
  return [...groups.values()].filter(({ length }) => length > 1);
}

/** Rejects where no node answers. */
export async function examineRedlock(
  tools: RedlockTools,
  { ttlMs, signal }: ExamineRequest,
): Promise<Examination> {
  const { terms } = tools;
  const { states, read } = await readNodes(tools, signal);
  if (states.every(({ info }) => info === null)) throw quorumError(tools.nodes, []);
  const [checks, failureCases] = terms.isSingleServer
    ? [singleServerChecks, singleServerFailureCases]
    : [redlockChecks, redlockFailureCases];
  const facts = { nodes: { value: states }, terms: { value: terms } };
  const ofServers = read
    .filter((_, at) => states[at]?.info !== null)
    .map(({ server, facts: found }) => ({
      server,
      findings: findingsOf<ServerFacts>(serverChecks, found, ttlMs),
    }));
  return {
    store: "redlock",
    findings: [...findingsOf(checks, facts, ttlMs), ...worstFindings(ofServers)],
    failureCases: failureCases({ nodes: states, terms }, ttlMs),
  };
}

/** The checks of a server, or a Cluster, that decides alone. */
export const singleServerChecks: readonly Check<RedlockFacts>[] = [
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
export function singleServerFailureCases({ terms }: RedlockFacts, ttlMs: number): FailureCase[] {
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

/** The failure cases of these nodes. */
export function redlockFailureCases({ nodes, terms }: RedlockFacts, ttlMs: number): FailureCase[] {
  const majority = majorityOf(nodes.length);
  const endured = nodes.length - majority;
  const here = nodes.filter(({ info }) => info !== null).length;
  const waitMs = Math.max(terms.maxTtlMs, ttlMs);
  const two = twoHolders(ttlMs);
  const more = here - majority;
  return [
    ...CLIENT_FAILURES,
    {
      event: "A node fails",
      outcome:
        more > 0
          ? `Locks go on: ${more} of the ${here} nodes that answer may fail.`
          : "No majority is left: locks stop, and leases end at their deadlines.",
      isSafe: true,
    },
    {
      event: "A node restarts without its data",
      outcome: `Locks are kept: the node votes again after ${seconds(waitMs)}.`,
      isSafe: true,
    },
    {
      event: "All nodes lose their data at once",
      outcome: `Locks are kept if no lease was longer than ${seconds(terms.maxTtlMs)}.`,
      isSafe: ttlMs <= terms.maxTtlMs,
    },
    {
      event: "The clock of a node jumps ahead",
      outcome:
        endured > 0
          ? `Locks are kept where more than ${majority} nodes voted for them; else ${two}.`
          : `Leases end early there: ${two}.`,
      isSafe: false,
    },
  ];
}
