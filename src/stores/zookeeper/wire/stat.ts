import type { JuteReader } from "./jute.js";

/** The state of a znode. A zxid is the number of a transaction, common to all servers. */
export interface Stat {
  /** The transaction that made the znode. */
  readonly czxid: bigint;
  /** The transaction that last changed its data. */
  readonly mzxid: bigint;
  readonly createdMs: number;
  readonly modifiedMs: number;
  /** Counts changes of the data. */
  readonly version: number;
  /** Counts children that came or left. */
  readonly childVersion: number;
  readonly aclVersion: number;
  /** The session that an ephemeral znode ends with; 0 for other znodes. */
  readonly ephemeralOwner: bigint;
  readonly dataBytes: number;
  readonly childCount: number;
  /** The transaction in which a child last came or left. */
  readonly pzxid: bigint;
}

export function readStat(reader: JuteReader): Stat {
  return {
    czxid: reader.long(),
    mzxid: reader.long(),
    createdMs: Number(reader.long()),
    modifiedMs: Number(reader.long()),
    version: reader.int(),
    childVersion: reader.int(),
    aclVersion: reader.int(),
    ephemeralOwner: reader.long(),
    dataBytes: reader.int(),
    childCount: reader.int(),
    pzxid: reader.long(),
  };
}
