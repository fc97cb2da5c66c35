import type { Facts } from "../../contract/examination.js";
import type { Runtime } from "../../time/runtime.js";
import { known, measureRoundTrip, type Reading, type RoundTrip, readFacts } from "../doctor.js";
import { type Fields, type ServerFacts, serverProbes } from "../redis-client/doctor.js";
import type { Survey } from "./admission.js";
import type { RedlockNode } from "./redlock-node.js";

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
  readonly isLone: boolean;
  /** A lone server grants no lock for this long after its start. */
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
