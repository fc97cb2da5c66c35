/**
 * Takes over a file that another boot, machine or time namespace wrote. Its times belong to another
 * clock, so they do not say whether its leases have expired.
 *
 * The store watches the leases for the longest ttl among them. A live holder renews its lease in
 * that time, which shows that two machines share the file: the store refuses that. If no lease has
 * changed, no process can think that it holds one, and the store takes the file over. What it has
 * observed is stored in the file, so many short-lived programs watch as well as one long-lived.
 */
import { StoreError } from "../../errors/index.js";
import { record, text, whole } from "../../events/foreign-data.js";
import type { Command, Instant, Reply } from "../../rules/ledger-command.js";
import type { Sqlite, Value } from "./client.js";
import { machineIdentity } from "./machine-runtime.js";
import { NameDocument } from "./name-document.js";
import { TOKEN_KEY, tokenOf } from "./protocol.js";

/** What was observed of the leases: their state, who observed it, and since when. */
interface Watch {
  readonly by: string;
  readonly sinceUs: number;
  readonly seen: string;
  /** A lease changed during the watch: every call is refused until long after that. */
  readonly isShared: boolean;
}

/**
 * Thrown by the work of a transaction that is committed all the same, because it has stored what
 * the watch has observed. While the leases may be alive, for `remainingUs`, every name counts as
 * held. Once they were seen to be alive (`isShared`), the file is refused.
 */
export class Quarantine {
  readonly remainingUs: number;
  readonly isShared: boolean;

  constructor(remainingUs: number, isShared = false) {
    this.remainingUs = remainingUs;
    this.isShared = isShared;
  }

  toError(): StoreError {
    const message = this.isShared
      ? "Another machine, or a container with a separate clock, uses the same lock file: a file " +
        "store serves one machine. Give each its own file, or use a store across the network."
      : "The lock file holds leases of another boot of this machine, or of another machine. " +
        `They expire within ${Math.ceil(this.remainingUs / 1e6)} s, unless they are renewed.`;
    const retryable = !this.isShared;
    return new StoreError(message, { outcome: "not_applied", retryable, store: "file" });
  }
}

interface Leases {
  /** For how long a holder may still believe in its lease; null if there are no leases. */
  readonly longestTtlUs: number | null;
  /** Changes with every grant, which moves a token, and every renewal, which moves an expiry. */
  readonly seen: string;
  /** Whether the clock of this machine can have timed all of them. */
  readonly arePossible: boolean;
}

const NAMES = `SELECT namespace, key, body FROM name WHERE key <> '${TOKEN_KEY}'`;
const TOKENS = `SELECT body FROM name WHERE key = '${TOKEN_KEY}'`;
const UPDATE = "UPDATE name SET body = ? WHERE namespace = ? AND key = ?";
const DELETE = "DELETE FROM name WHERE namespace = ? AND key = ?";
/** Keeps sums of large numbers exact. */
const SUM_MODULUS = 2 ** 31 - 1;
const added = (sum: number, value: number): number => (sum + (value % SUM_MODULUS)) % SUM_MODULUS;

/** Two clocks drift apart by less than this factor. */
const CLOCK_SLACK = 1.02;

/** Runs inside a transaction. Returns when the file is ours; throws `Quarantine` before that. */
export function takeOver(database: Sqlite, at: Instant): void {
  const identity = machineIdentity();
  const { longestTtlUs, seen } = leasesIn(database, at);
  if (longestTtlUs === null) return takeFile(database, at);
  const [before, watchText] = database.get("SELECT identity, watch FROM machine", []) ?? [];
  const watch = readWatch(watchText);
  const isMine = watch?.by === identity && watch.sinceUs <= at.us;
  const isSame = watch?.seen === seen;
  if (!isMine || !isSame) {
    const begun: Watch = { by: identity, sinceUs: at.us, seen, isShared: isMine };
    saveMachine(database, String(before), JSON.stringify(begun));
  }
  const lengthUs = longestTtlUs * CLOCK_SLACK;
  if (!isMine) throw new Quarantine(lengthUs);
  if (!isSame) throw new Quarantine(lengthUs, true);
  const remainingUs = watch.sinceUs + lengthUs - at.us;
  if (remainingUs > 0) throw new Quarantine(remainingUs, watch.isShared);
  takeFile(database, at);
}

/**
 * For systems without a boot id. Leases that this clock cannot have timed were granted before a
 * restart: from now on the file counts as one of another boot, and `takeOver` watches it.
 */
export function detectRestart(database: Sqlite, at: Instant): void {
  if (leasesIn(database, at).arePossible) return;
  database.run("UPDATE machine SET identity = '' WHERE identity = ?", [machineIdentity()]);
}

/**
 * The reply to a command during the watch: every name counts as held by an unknown holder, nothing
 * of this boot is held, and asking again helps.
 */
export function quarantineReply(command: Command, quarantine: Quarantine): Reply | StoreError {
  const blockage = { holder: null, dueUs: quarantine.remainingUs };
  switch (command.type) {
    case "acquire":
      return command.enqueue
        ? { type: "queued", ahead: null, ...blockage }
        : { type: "busy", ...blockage };
    case "heartbeat":
      return { type: "heartbeat", grants: [], waiting: 0, more: false, ...blockage };
    case "confirm":
    case "renew":
      return { type: "gone", reason: "missing", detail: "the lock file is of another boot" };
    case "release":
      return { type: "released", held: false, offerUs: 0, more: false };
    case "inspect":
    case "revoke":
      return quarantine.toError();
  }
}

function leasesIn(database: Sqlite, at: Instant): Leases {
  let longestTtlUs: number | null = null;
  let count = 0;
  let tokenSum = 0;
  for (const [body] of database.all(TOKENS, [])) tokenSum = added(tokenSum, tokenOf(body));
  let expirySum = 0;
  let arePossible = true;
  for (const [, , body] of database.all(NAMES, [])) {
    for (const { ttlUs, expiryUs } of readDocument(body, at)?.holders() ?? []) {
      longestTtlUs = Math.max(longestTtlUs ?? 0, ttlUs);
      count += 1;
      expirySum = added(expirySum, expiryUs);
      arePossible &&= expiryUs <= at.us + ttlUs;
    }
  }
  return { longestTtlUs, seen: `${count} ${expirySum} ${tokenSum}`, arePossible };
}

/** Drops what the clock of before timed. The last tokens stay; marks stay by the wall clock. */
function takeFile(database: Sqlite, at: Instant): void {
  for (const [namespace = null, key = null, body = null] of database.all(NAMES, [])) {
    const document = readDocument(body, at);
    document?.startClock(at);
    const kept = document?.toText();
    if (kept === null) database.run(DELETE, [namespace, key]);
    else if (kept !== undefined) database.run(UPDATE, [kept, namespace, key]);
  }
  saveMachine(database, machineIdentity(), null);
}

/** Null for foreign data, which stays where it is and keeps nobody from using the other names. */
function readDocument(body: Value | undefined, at: Instant): NameDocument | null {
  try {
    return new NameDocument("", text(body), { last: 0 }, at);
  } catch {
    return null;
  }
}

/** The table has one row, also if another program has deleted it. */
function saveMachine(database: Sqlite, identity: string, watch: string | null): void {
  database.exec("DELETE FROM machine");
  database.run("INSERT INTO machine VALUES (?, ?)", [identity, watch]);
}

/** Null if it cannot be read: then the watch begins again. */
function readWatch(value: unknown): Watch | null {
  try {
    const { by, sinceUs, seen, isShared } = record(JSON.parse(text(value)));
    return { by: text(by), sinceUs: whole(sinceUs), seen: text(seen), isShared: isShared === true };
  } catch {
    return null;
  }
}
