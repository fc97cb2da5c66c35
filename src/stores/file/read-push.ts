import { oneOf, record, text, whole } from "../../foreign-data.js";
import type { Push } from "../../rules/ledger-command.js";

/** The push in a line that came by a socket. Anybody on this machine may have written the line. */
export function readPush(line: string): Push {
  const push = record(JSON.parse(line));
  const about = { client: text(push.client), key: text(push.key) };
  const type = oneOf(["granted", "marked", "revoked"], push.type);
  if (type === "granted") {
    const { owner, token, span, grantedUs, expiryUs } = record(push.grant);
    const grant = {
      owner: text(owner),
      token: whole(token),
      span: whole(span),
      grantedUs: whole(grantedUs),
      expiryUs: whole(expiryUs),
    };
    return { ...about, type, grant };
  }
  const ended = { ...about, owner: text(push.owner), token: whole(push.token) };
  if (type === "marked") return { ...ended, type, meta: text(push.meta) };
  return { ...ended, type, reason: text(push.reason) };
}
