import { connect } from "node:net";
import type { Port } from "../../time/port.js";
import type { Probes } from "../examining/read-facts.js";
import { measureRoundTrip, type RoundTrip } from "../examining/round-trip.js";
import type { EtcdCalls } from "./etcd-calls.js";
import type { Member, StatusReply } from "./etcd-client.js";
import type { Layout } from "./layout.js";
import { fetchMetrics, type Metrics } from "./metrics.js";

/** The state of a cluster. */
export interface EtcdFacts {
  readonly status: StatusReply;
  /** The alarms that are raised, in small letters. */
  readonly alarms: readonly string[];
  readonly members: readonly Member[];
  /** The names of members that do not answer where they say that clients reach them. */
  readonly away: readonly string[];
  /** Of each member that tells them. */
  readonly metrics: readonly Metrics[];
  /** The wall clock of this process, which metrics are compared with. */
  readonly nowSeconds: number;
  /** Why the keys of the store cannot be read and written; null where they can. */
  readonly refusal: string | null;
  readonly roundTrip: RoundTrip;
}

/** The parts of the store that the probes use. */
export interface EtcdTools {
  readonly calls: EtcdCalls;
  readonly layout: Layout;
  readonly port: Port;
}

const CALL_MS = 1_500;
const CONNECT_MS = 1_000;
/** No key was ever made at this revision, so the write behind it is never done. */
const NEVER = "9223372036854775806";

export function etcdProbes({ calls, layout, port }: EtcdTools): Probes<EtcdFacts> {
  const key = layout.session("0");
  let members: Promise<readonly Member[]> | undefined;
  const listMembers = (): Promise<readonly Member[]> => {
    members ??= calls.members(CALL_MS);
    return members;
  };
  return {
    status: () => calls.status(CALL_MS),
    alarms: async () => (await calls.alarms(CALL_MS)).map((alarm) => alarm.toLowerCase()),
    members: listMembers,
    away: async () => {
      const tried = (await listMembers()).map(async (member) => {
        return (await isReached(member)) ? [] : [member.name || "a member that has not started"];
      });
      return (await Promise.all(tried)).flat();
    },
    metrics: async () => {
      const asked = (await listMembers()).map(({ clientURLs }) => metricsOf(clientURLs));
      const told = await Promise.allSettled(asked);
      const found = told.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
      const [failed] = told.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
      if (found.length > 0) return found;
      throw new Error(`No member tells its metrics: ${(failed as Error | undefined)?.message}.`);
    },
    nowSeconds: () => port.clock.wallUs() / 1_000_000,
    refusal: async () => {
      try {
        // etcd checks the rights of both branches before it compares.
        const compare = [
          { result: "Equal", target: "Create", key, create_revision: NEVER },
        ] as const;
        const success = [{ request_put: { key } }];
        const failure = [{ request_range: { key, keys_only: true } }];
        await calls.txn({ compare: [...compare], success, failure }, CALL_MS);
        return null;
      } catch (error) {
        if (/permission denied|user name is empty/.test(String(error))) return String(error);
        throw error;
      }
    },
    roundTrip: () => measureRoundTrip(port.clock, () => calls.range({ key }, CALL_MS)),
  };
}

async function metricsOf(urls: readonly string[]): Promise<Metrics> {
  const url = urls.find((one) => one.startsWith("http:"));
  if (url === undefined) throw new Error("it has no URL without TLS");
  return await fetchMetrics(url);
}

/** Whether a connection to one of the URLs of the member can be made. */
async function isReached({ clientURLs }: Member): Promise<boolean> {
  const tried = clientURLs.filter((url) => URL.canParse(url)).map((url) => isOpen(new URL(url)));
  return (await Promise.all(tried)).includes(true);
}

function isOpen({ hostname, port, protocol }: URL): Promise<boolean> {
  return new Promise((resolve) => {
    const host = hostname.replace(/^\[|\]$/g, "");
    const number = Number(port || (protocol === "https:" ? 443 : 80));
    const socket = connect({ host, port: number, timeout: CONNECT_MS });
    const end = (isReached: boolean): void => {
      socket.destroy();
      resolve(isReached);
    };
    socket.once("connect", () => end(true));
    socket.once("timeout", () => end(false));
    socket.once("error", () => end(false));
  });
}
