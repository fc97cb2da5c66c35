import { HoldfastError, StoreError } from "../../errors/index.js";
import { foreignData, Unreadable } from "../../events/foreign-data.js";
import { type ErrorCode, ZookeeperError } from "./wire/zookeeper-error.js";

/** ZooKeeper refused the request, and will refuse it again; some with a remedy. */
const FINAL: Partial<Record<ErrorCode, string>> = {
  no_auth: "Does the user of the store have all permissions on this znode?",
  auth_failed: "Check the user and the password.",
  invalid_acl: "The acl creator needs a user and a password.",
  sasl_required: "The store speaks digest authentication only.",
  ephemeral_on_local_session: "Set localSessionsUpgradingEnabled=true on the servers.",
  no_children_for_ephemerals: "Another program has a znode at the place of the lock.",
  unimplemented: "Holdfast needs ZooKeeper 3.5 or later.",
  quota_exceeded: "Raise the quota of the znode, or remove znodes below it.",
  too_large: "",
  bad_arguments: "",
};

/** `servers`: where ZooKeeper is, for messages. */
export function zookeeperError(cause: unknown, servers: string): HoldfastError {
  if (cause instanceof HoldfastError) return cause;
  if (cause instanceof Unreadable) return foreignData("the reply to a call", cause);
  const where = `ZooKeeper at ${servers}`;
  const said = cause instanceof Error ? cause.message : String(cause);
  // The failure of a connection begins with the place of its server.
  const text = said.startsWith(`${servers}: `) ? said.slice(servers.length + 2) : said;
  if (!(cause instanceof ZookeeperError)) {
    return new StoreError(`${where}: ${text}`, { outcome: "unknown", cause });
  }
  const advice = FINAL[cause.code];
  const isFinal = advice !== undefined;
  return new StoreError(`${where}: ${text}${advice ? `. ${advice}` : "."}`, {
    outcome: cause.outcome === "unknown" ? "unknown" : "not_applied",
    retryable: !isFinal,
    cause,
  });
}

/** Whether the request may have been done, or may still be. */
export function isUnknown(error: unknown): boolean {
  return !(error instanceof ZookeeperError) || error.outcome === "unknown";
}
