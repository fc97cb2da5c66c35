/**
 * Takes over a file that another boot, machine or time namespace wrote. Its times are by another
 * clock, so they do not tell whether its leases are over.
 *
 * The leases are watched for as long as the longest of them lasts. A live holder renews its lease
 * in that time: then two machines share the file, and this store refuses it. If no lease has
 * changed, no process can believe in one any more, and the file is taken over. The observation is
 * kept in the file, so that many short-lived programs watch as well as one that stays.
 */
import { StoreError } from "../../errors.js";
import { record, text, whole } from "../../foreign-data.js";
import type { Instant } from "../../rules/ledger-command.js";
import { machineIdentity } from "./machine-identity.js";
import type { Here, KeptMark, NameRecord } from "./name-record.js";
import { nameOf } from "./read-rows.js";
import type { Sqlite, Value } from "./sqlite.js";

/** An observation of the leases: its content, its observer and its start. */
interface Watch {
  readonly by: string;
  readonly sinceUs: number;
  readonly seen: string;
  /** A lease changed while it was watched: every call is told so, until that is long past. */
  readonly isShared: boolean;
}

/**
 * Thrown out of a transaction that is committed all the same: the leases of before may be alive for
 * so long, and until then everything counts as taken; or they were seen to live, and that is the
 * end.
 */
export class Quarantine {
  readonly remainingUs: number;
  readonly refusal: StoreError | null;

  constructor(remainingUs: number, refusal: StoreError | null = null) {
    this.remainingUs = remainingUs;
    this.refusal = refusal;
  }
}

/** A row that cannot be read does not count: it must not keep the whole file from being used. */
const object = (column: string): string =>
  `CASE WHEN typeof(${column}) = 'text' AND json_valid(${column}) THEN ${column} ELSE '{}' END`;
const isCount = (column: string): string =>
  `typeof(${column}) = 'integer' AND ${column} BETWEEN 0 AND ${Number.MAX_SAFE_INTEGER}`;
const LEASES = `SELECT * FROM (
  SELECT json_extract(${object("value")}, '$.expiryUs') AS expiry,
      json_extract(${object("value")}, '$.ttlUs') AS ttl
    FROM name, json_each(${object("name.body")}, '$.holders')
  UNION ALL SELECT expiry, json_extract(${object("body")}, '$.ttlUs') FROM holder
) WHERE ${isCount("ttl")} AND ${isCount("expiry")}`;
/** SQLite adds up whole numbers of 64 bits, and fails beyond: of large ones, the rest is enough. */
const sumOf = (column: string): string => `coalesce(sum(${column} % ${2 ** 31 - 1}), 0)`;
/** Every grant moves a token on, every renewal an expiry. */
const SEEN = `SELECT max(ttl), count(ttl) || ' ' || ${sumOf("expiry")} || ' ' ||
  (SELECT ${sumOf("token")} FROM space WHERE ${isCount("token")}) FROM (${LEASES})`;

const NAMES = "SELECT space, key, body FROM name";
const UNREADABLE = Symbol("unreadable");

/** Seconds differ between two clocks by less than this, and a lease is judged in milliseconds. */
const CLOCK_SLACK = 1.02;

/** Runs inside a transaction. Returns when the file is ours; throws `Quarantine` before. */
export function takeOver(database: Sqlite, at: Instant): void {
  const identity = machineIdentity();
  const [ttlUs, seen] = database.get(SEEN, []) as [number | null, string];
  if (ttlUs === null) return takeFile(database, at);
  const [text] = database.get("SELECT watch FROM machine", []) ?? [];
  const watch = readWatch(text);
  const isMine = watch?.by === identity && watch.sinceUs <= at.us;
  const isSame = watch?.seen === seen;
  if (!isMine || !isSame) {
    const begun: Watch = { by: identity, sinceUs: at.us, seen, isShared: isMine };
    database.run("UPDATE machine SET watch = ?", [JSON.stringify(begun)]);
  }
  const lengthUs = ttlUs * CLOCK_SLACK;
  if (!isMine) throw new Quarantine(lengthUs);
  if (!isSame) throw new Quarantine(lengthUs, sharedFile());
  const remainingUs = watch.sinceUs + lengthUs - at.us;
  if (remainingUs > 0) throw new Quarantine(remainingUs, watch.isShared ? sharedFile() : null);
  takeFile(database, at);
}

/** Where no boot id tells, leases that this clock cannot have made prove that it started anew. */
export function dropImpossible(database: Sqlite, at: Instant): void {
  const impossible = `SELECT 1 FROM (${LEASES}) WHERE expiry > ? + ttl LIMIT 1`;
  if (database.get(impossible, [at.us])) takeFile(database, at);
}

function sharedFile(): StoreError {
  return new StoreError(
    "Another machine, or a container with a clock of its own, uses the same lock file: a file " +
      "store serves one machine. Give each its own file, or use a store across the network.",
    { outcome: "not_applied", retryable: false, store: "file" },
  );
}

/** Nothing where it cannot be read: then the watch begins anew. */
function readWatch(value: unknown): Watch | null {
  try {
    const { by, sinceUs, seen, isShared } = record(JSON.parse(text(value)));
    return { by: text(by), sinceUs: whole(sinceUs), seen: text(seen), isShared: isShared === true };
  } catch {
    return null;
  }
}

/** Drops all that the clock of before told. The last tokens stay; marks stay by the wall clock. */
function takeFile(database: Sqlite, at: Instant): void {
  for (const table of ["holder", "waiter", "client", "tombstone"]) {
    database.exec(`DELETE FROM ${table}`);
  }
  for (const [space, key, body] of database.all(NAMES, []) as [number, string, Value][]) {
    const mark = markOf([space, key], body);
    if (mark === UNREADABLE) continue;
    if (mark && mark.untilWallUs > at.wallUs) {
      const kept: NameRecord = { mark: { ...mark, untilUs: at.us + mark.untilWallUs - at.wallUs } };
      database.run("UPDATE name SET body = ? WHERE space = ? AND key = ?", [
        JSON.stringify(kept),
        space,
        key,
      ]);
    } else database.run("DELETE FROM name WHERE space = ? AND key = ?", [space, key]);
  }
  database.run("UPDATE machine SET identity = ?, watch = NULL", [machineIdentity()]);
}

/** Foreign data stays where it is. */
function markOf(here: Here, body: Value): KeptMark | undefined | typeof UNREADABLE {
  try {
    return nameOf(here, body).mark;
  } catch {
    return UNREADABLE;
  }
}
