import { MAX_TIMEOUT_MS, type SessionKey } from "./wire/opened-session.js";
import { readZnodeName } from "./znode-name.js";

/**
 * Names an entry and the session that it is in: `<session>/<password>/<timeoutMs>/<znode>`. It is a
 * secret: any process that has it can resume the session.
 */
export interface Locator {
  readonly key: SessionKey;
  readonly timeoutMs: number;
  readonly znode: string;
}

const LOCATOR = /^([0-9a-f]{1,16})\/([0-9a-f]{32})\/([1-9]\d{0,9})\/([^/]+)$/;

export function locatorText({ key: { id, password }, timeoutMs, znode }: Locator): string {
  const session = BigInt.asUintN(64, id).toString(16);
  return `${session}/${password.toString("hex")}/${timeoutMs}/${znode}`;
}

/** A locator may have come by any way: null where the text is none. */
export function readLocator(text: string): Locator | null {
  const [, session, password = "", timeout, znode = ""] = LOCATOR.exec(text) ?? [];
  if (session === undefined || readZnodeName(znode) === null) return null;
  const timeoutMs = Number(timeout);
  if (timeoutMs > MAX_TIMEOUT_MS) return null;
  const key = {
    id: BigInt.asIntN(64, BigInt(`0x${session}`)),
    password: Buffer.from(password, "hex"),
  };
  return { key, timeoutMs, znode };
}
