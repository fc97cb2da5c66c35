import type { ProxiedReply, ProxiedRequest } from "../../test/faults/framing.js";
import type { FramingName } from "../../test/faults/proxy-link.js";
import { LOCK_NAME } from "../orders.js";

/** How a protocol shows which requests are about the lock of the trial. */
export interface Wire {
  readonly framing: FramingName;
  /** Requests that take, renew or release the lock. */
  isAboutLock(request: ProxiedRequest): boolean;
  /** Whether the request of this reply took effect. */
  tookEffect(reply: ProxiedReply): boolean;
  /**
   * Where replies do not show their requests: whether the store has a request for the lock. Absent
   * where they do.
   */
  isTaken?(): Promise<boolean>;
}

const isNamed = ({ bytes }: ProxiedRequest): boolean => bytes.includes(LOCK_NAME);

export const redisWire: Wire = {
  framing: "resp",
  isAboutLock: (request) => isNamed(request) && request.command !== "GET",
  tookEffect: () => true,
};

export const postgresWire: Wire = {
  framing: "postgres",
  isAboutLock: isNamed,
  tookEffect: () => true,
};

const ZNODE_WRITES = ["CREATE2", "DELETE", "MULTI"];

export const zookeeperWire: Wire = {
  framing: "zookeeper",
  isAboutLock: (request) => isNamed(request) && ZNODE_WRITES.includes(request.command),
  // The first one in a new queue is refused: its parent does not exist yet.
  tookEffect: ({ value }) => value === 0,
};

/** HTTP/2 without framing: chunks of requests contain the name, chunks of replies do not. */
export function etcdWire(isTaken: () => Promise<boolean>): Wire {
  return { framing: "none", isAboutLock: isNamed, tookEffect: () => true, isTaken };
}
