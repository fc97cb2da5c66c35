/** Reads the requests of clients, and writes the replies of simulated servers. */
import {
  FrameSplitter,
  JuteReader,
  JuteWriter,
  type Stat,
} from "../../src/stores/zookeeper/wire/jute.js";
import { Operation } from "../../src/stores/zookeeper/wire/requests.js";

export interface SessionRequest {
  readonly lastZxid: bigint;
  readonly timeoutMs: number;
  /** 0: a new session. */
  readonly session: bigint;
}

export type Write =
  | {
      readonly type: "create";
      readonly path: string;
      readonly data: Buffer;
      readonly isEphemeral: boolean;
      readonly isSequential: boolean;
      readonly isContainer: boolean;
    }
  | {
      readonly type: "set";
      readonly path: string;
      readonly data: Buffer;
      /** `ANY_VERSION`, or the version that the data must have. */
      readonly version: number;
    }
  | { readonly type: "delete" | "check"; readonly path: string };

export type ClientRequest = { readonly xid: number } & (
  | { readonly type: "write"; readonly writes: readonly Write[]; readonly isMulti: boolean }
  | { readonly type: "getData"; readonly path: string; readonly watches: boolean }
  | { readonly type: "exists" | "getChildren"; readonly path: string }
  | { readonly type: "sync"; readonly path: string }
  | { readonly type: "setWatches"; readonly sinceZxid: bigint; readonly paths: readonly string[] }
  | { readonly type: "ping" | "closeSession" }
);

/** The reply to one write. */
export interface Written {
  readonly operation: number;
  readonly path: string | null;
  readonly stat: Stat | null;
}

export const PING_XID = -2;
const EVENT_XID = -1;
const SERVER_VERSION = 0;
const CONTAINER_MODE = 4;
const SEQUENTIAL = [2, 3];
const NOT_LOOKED_AT = -2;
const PASSWORD = Buffer.alloc(16, 7);
const CONNECTED = 3;
const PLAIN_CREATE = { operation: Operation.create, stat: null };

export function newSplitter(): FrameSplitter {
  return new FrameSplitter(2 ** 24);
}

export function readSessionRequest(frame: Buffer): SessionRequest {
  const reader = new JuteReader(frame, "");
  reader.int();
  return { lastZxid: reader.long(), timeoutMs: reader.int(), session: reader.long() };
}

export function readRequest(frame: Buffer): ClientRequest {
  const reader = new JuteReader(frame, "");
  const xid = reader.int();
  const operation = reader.int();
  switch (operation) {
    case Operation.ping:
      return { xid, type: "ping" };
    case Operation.closeSession:
      return { xid, type: "closeSession" };
    case Operation.sync:
      return { xid, type: "sync", path: reader.path() };
    case Operation.exists:
      return { xid, type: "exists", path: reader.path() };
    case Operation.getChildren2:
      return { xid, type: "getChildren", path: reader.path() };
    case Operation.getData:
      return { xid, type: "getData", path: reader.path(), watches: reader.bool() };
    case Operation.setWatches:
      return { xid, type: "setWatches", sinceZxid: reader.long(), paths: readTexts(reader) };
    case Operation.multi:
      return { xid, type: "write", writes: [...readParts(reader)], isMulti: true };
    default:
      return { xid, type: "write", writes: [readWrite(reader, operation)], isMulti: false };
  }
}

function readTexts(reader: JuteReader): string[] {
  return reader.list(() => reader.path());
}

function* readParts(reader: JuteReader): Generator<Write> {
  for (;;) {
    const operation = reader.int();
    const isEnd = reader.bool();
    reader.int();
    if (isEnd) return;
    yield readWrite(reader, operation);
  }
}

function readWrite(reader: JuteReader, operation: number): Write {
  const path = reader.path();
  switch (operation) {
    case Operation.create2:
    case Operation.createContainer: {
      const data = reader.buffer();
      reader.list(() => [reader.int(), reader.text(), reader.text()]);
      const mode = reader.int();
      const isContainer = mode === CONTAINER_MODE;
      const isEphemeral = !isContainer && mode % 2 === 1;
      return {
        type: "create",
        path,
        data,
        isEphemeral,
        isSequential: SEQUENTIAL.includes(mode),
        isContainer,
      };
    }
    case Operation.setData: {
      const data = reader.buffer();
      return { type: "set", path, data, version: reader.int() };
    }
    case Operation.delete:
    case Operation.check:
      reader.int();
      return { type: operation === Operation.delete ? "delete" : "check", path };
    default:
      throw new Error(`The simulated ZooKeeper does not know the request ${operation}.`);
  }
}

/** A time-out of 0: the session is over. */
export function sessionReply(timeoutMs: number, session: bigint): Buffer {
  const writer = new JuteWriter("").int(SERVER_VERSION).int(timeoutMs).long(session);
  return writer.buffer(PASSWORD).bool(false).frame();
}

export function reply(
  xid: number,
  zxid: bigint,
  write: (writer: JuteWriter) => unknown = () => {},
): Buffer {
  const writer = new JuteWriter("").int(xid).long(zxid).int(0);
  write(writer);
  return writer.frame();
}

export function errorReply(xid: number, zxid: bigint, error: number): Buffer {
  return new JuteWriter("").int(xid).long(zxid).int(error).frame();
}

export function eventFrame(type: "deleted" | "changed", path: string): Buffer {
  const writer = new JuteWriter("").int(EVENT_XID).long(-1n).int(0);
  return writer
    .int(type === "deleted" ? 2 : 3)
    .int(CONNECTED)
    .path(path)
    .frame();
}

export function writeStat(writer: JuteWriter, stat: Stat): void {
  writer.long(stat.czxid).long(stat.mzxid);
  writer.long(BigInt(Math.floor(stat.createdMs))).long(BigInt(Math.floor(stat.modifiedMs)));
  writer.int(stat.version).int(stat.childVersion).int(stat.aclVersion).long(stat.ephemeralOwner);
  writer.int(stat.dataBytes).int(stat.childCount).long(stat.pzxid);
}

export function writeWritten(writer: JuteWriter, { path, stat }: Written): void {
  if (path !== null) writer.path(path);
  if (stat) writeStat(writer, stat);
}

/** Servers answer a create2 in a multi as a create, which has no stat. */
export function writeMulti(writer: JuteWriter, replies: readonly Written[]): void {
  for (const { operation, path, stat } of replies) {
    const one = path === null ? { operation, path, stat } : { ...PLAIN_CREATE, path };
    writer.int(one.operation).bool(false).int(0);
    writeWritten(writer, one);
  }
  writer.int(-1).bool(true).int(-1);
}

/** Nothing was done, because of the part with this index. */
export function writeRefusedMulti(
  writer: JuteWriter,
  { at, error }: { readonly at: number; readonly error: number },
  count: number,
): void {
  for (let index = 0; index < count; index += 1) {
    const number = index < at ? 0 : index === at ? error : NOT_LOOKED_AT;
    writer.int(-1).bool(false).int(number).int(number);
  }
  writer.int(-1).bool(true).int(-1);
}
