/**
 * The requests to ZooKeeper, as values that a connection can send. Paths are below the chroot of
 * the connection. A reply carries the `zxid` that the server answered with: for a write it is the
 * transaction of that write, for a read the last transaction that the server had applied.
 */

import { Unreadable } from "../../../events/foreign-data.js";
import { hasCode, serverError, type ZookeeperError } from "../errors.js";
import { type JuteReader, type JuteWriter, readStat, type Stat } from "./jute.js";
import type { WatchKind, WatchListener } from "./watch-table.js";

/** A request, and how its reply is read. */
export interface Request<Reply> {
  readonly operation: number;
  /** Shown in errors. */
  readonly path: string;
  write(writer: JuteWriter): void;
  /** Never undefined. */
  read(reader: JuteReader, zxid: bigint): Reply;
  /** The reply that an error of the server stands for; undefined where it is an error. */
  readError?(error: ZookeeperError, zxid: bigint): Reply | undefined;
  /** The one-shot watch that the request sets. The reply decides its kind. */
  readonly watch?: RequestedWatch<Reply> | undefined;
}

export interface RequestedWatch<Reply> {
  readonly listener: WatchListener;
  /** Null: the server has set no watch. */
  kindBy(reply: Reply): WatchKind | null;
}

/** The moment of a reply: the last transaction that it shows. */
export interface Timed {
  readonly zxid: bigint;
}

export interface Created extends Timed {
  /** With the sequence number, if there is one. */
  readonly path: string;
  readonly stat: Stat;
}

export interface DataReply extends Timed {
  readonly data: Buffer;
  readonly stat: Stat;
}

export interface StatReply extends Timed {
  readonly stat: Stat;
}

export interface ExistsReply extends Timed {
  /** Null where the znode does not exist. */
  readonly stat: Stat | null;
}

export interface ChildrenReply extends Timed {
  /** In no order. */
  readonly names: readonly string[];
  /** Of the parent. */
  readonly stat: Stat;
}

/** A container is removed by the server some time after its last child has left. */
export type CreateMode =
  | "persistent"
  | "ephemeral"
  | "persistent_sequential"
  | "ephemeral_sequential"
  | "container";

export interface CreateOptions {
  /** Default: empty. */
  readonly data?: Uint8Array;
  /** Default: "persistent". */
  readonly mode?: CreateMode;
  /** Default: `OPEN_ACL`. */
  readonly acl?: readonly Acl[];
}

/** The numbers of the requests in the protocol. */
export const Operation = {
  create: 1,
  delete: 2,
  exists: 3,
  getData: 4,
  setData: 5,
  sync: 9,
  ping: 11,
  getChildren2: 12,
  check: 13,
  multi: 14,
  create2: 15,
  createContainer: 19,
  auth: 100,
  setWatches: 101,
  closeSession: -11,
} as const;

const MODES: readonly CreateMode[] = [
  "persistent",
  "ephemeral",
  "persistent_sequential",
  "ephemeral_sequential",
  "container",
];
const NO_BYTES = new Uint8Array(0);
/** The version that fits every znode. */
export const ANY_VERSION = -1;

/** Makes a znode. Throws `node_exists`, `no_node` where the parent is missing, `no_auth`. */
export function create2(path: string, options: CreateOptions = {}): Request<Created> {
  const { data = NO_BYTES, mode = "persistent", acl = OPEN_ACL } = options;
  return {
    operation: mode === "container" ? Operation.createContainer : Operation.create2,
    path,
    write: (writer) =>
      writer
        .path(path)
        .buffer(data)
        .list(acl, ({ permissions, scheme, id }) => writer.int(permissions).text(scheme).text(id))
        .int(MODES.indexOf(mode)),
    read: (reader, zxid) => ({ path: reader.path(), stat: readStat(reader), zxid }),
  };
}

/** Removes a znode without children. Throws `no_node`, `bad_version`, `not_empty`. */
export function remove(path: string, version: number = ANY_VERSION): Request<Timed> {
  return {
    operation: Operation.delete,
    path,
    write: (writer) => writer.path(path).int(version),
    read: (_, zxid) => ({ zxid }),
  };
}

/** Replaces the data. Throws `no_node`, `bad_version`. */
export function setData(
  path: string,
  data: Uint8Array,
  version: number = ANY_VERSION,
): Request<StatReply> {
  return {
    operation: Operation.setData,
    path,
    write: (writer) => writer.path(path).buffer(data).int(version),
    read: (reader, zxid) => ({ stat: readStat(reader), zxid }),
  };
}

/** Part of a `multi`: it fails unless the znode exists and has the version. */
export function check(path: string, version: number = ANY_VERSION): Request<Timed> {
  return { ...remove(path, version), operation: Operation.check };
}

/** Throws `no_node`, and sets no watch then. The watch tells changes of the data and the end. */
export function getData(path: string, listener?: WatchListener): Request<DataReply> {
  return {
    operation: Operation.getData,
    path,
    write: (writer) => writer.path(path).bool(listener !== undefined),
    read: (reader, zxid) => ({ data: reader.buffer(), stat: readStat(reader), zxid }),
    watch: listener && { listener, kindBy: () => "data" },
  };
}

/** The watch tells that the znode was made, or its data changed, or that it was removed. */
export function exists(path: string, listener?: WatchListener): Request<ExistsReply> {
  return {
    operation: Operation.exists,
    path,
    write: (writer) => writer.path(path).bool(listener !== undefined),
    read: (reader, zxid) => ({ stat: readStat(reader), zxid }),
    readError: (error, zxid) => (hasCode(error, "no_node") ? { stat: null, zxid } : undefined),
    watch: listener && { listener, kindBy: ({ stat }) => (stat ? "data" : "exists") },
  };
}

/** Throws `no_node`, and sets no watch then. The watch tells children that come or leave. */
export function getChildren2(path: string, listener?: WatchListener): Request<ChildrenReply> {
  return {
    operation: Operation.getChildren2,
    path,
    write: (writer) => writer.path(path).bool(listener !== undefined),
    read: (reader, zxid) => ({
      names: reader.list(() => reader.text()),
      stat: readStat(reader),
      zxid,
    }),
    watch: listener && { listener, kindBy: () => "children" },
  };
}

/** The children of a znode; none, and no stat, where it does not exist. */
export function childrenIn(
  path: string,
): Request<Omit<ChildrenReply, "stat"> & { readonly stat: Stat | null }> {
  return {
    ...getChildren2(path),
    readError: (error, zxid) =>
      hasCode(error, "no_node") ? { names: [], stat: null, zxid } : undefined,
  };
}

/**
 * Brings the server of this connection up to date with the leader: reads that are sent behind it on
 * the same connection show all that was committed before it was sent.
 */
export function sync(path: string): Request<Timed> {
  return {
    operation: Operation.sync,
    path,
    write: (writer) => writer.path(path),
    read: (reader, zxid) => {
      reader.path();
      return { zxid };
    },
  };
}

/** Ends the session with its ephemeral znodes. */
export function closeSession(): Request<Timed> {
  return {
    operation: Operation.closeSession,
    path: "",
    write: () => {},
    read: (_, zxid) => ({ zxid }),
  };
}

/** The permissions of a znode, and the credentials of a connection. */

/** Numbers that are added up: read 1, write 2, create 4, delete 8, admin 16. */
const ALL_PERMISSIONS = 31;

/** The permissions of one identity at a znode. */
export interface Acl {
  readonly permissions: number;
  readonly scheme: string;
  readonly id: string;
}

/** A proof of identity, such as the scheme `digest` with the text `user:password`. */
export interface Credential {
  readonly scheme: string;
  readonly text: string;
}

/** Every client may do everything. */
export const OPEN_ACL: readonly Acl[] = [
  { permissions: ALL_PERMISSIONS, scheme: "world", id: "anyone" },
];

/** Every identity that the connection has proven may do everything, and no other client. */
export const CREATOR_ACL: readonly Acl[] = [
  { permissions: ALL_PERMISSIONS, scheme: "auth", id: "" },
];

/** Several writes and checks in one transaction: all of them are done, or none. */

/** A part of a transaction: `create2`, `remove`, `setData` or `check`. */
export type MultiPart = Request<Created> | Request<StatReply> | Request<Timed>;

/** The reply to one part. All parts have the same zxid, which is the czxid of what they made. */
export interface PartReply {
  readonly zxid: bigint;
  /** Of a znode that was made, with its sequence number; null for other parts. */
  readonly path: string | null;
  /** Of a `setData`; for a znode that was made only where the server tells it. */
  readonly stat: Stat | null;
}

export type MultiReply =
  /** One reply for each part, in their order. */
  | { readonly type: "done"; readonly zxid: bigint; readonly replies: readonly PartReply[] }
  /** Nothing was done, because of the part with this index. Later parts were not looked at. */
  | {
      readonly type: "refused";
      readonly zxid: bigint;
      readonly at: number;
      readonly error: ZookeeperError;
    };

const CREATES: readonly number[] = [Operation.create, Operation.create2, Operation.createContainer];
const END = -1;
const FAILED_PART = -1;
/** The error of a part that did not fail by itself. */
const NOT_LOOKED_AT = -2;

export function multi(parts: readonly MultiPart[]): Request<MultiReply> {
  return {
    operation: Operation.multi,
    path: parts.map(({ path }) => path).join(", "),
    write: (writer) => {
      for (const part of parts) {
        writer.int(part.operation).bool(false).int(-1);
        part.write(writer);
      }
      writer.int(END).bool(true).int(-1);
    },
    read: (reader, zxid) => readReply(reader, zxid, parts),
  };
}

function readReply(reader: JuteReader, zxid: bigint, parts: readonly MultiPart[]): MultiReply {
  const replies: PartReply[] = [];
  let refusal: { readonly at: number; readonly error: ZookeeperError } | null = null;
  let count = 0;
  for (; ; count += 1) {
    const operation = reader.int();
    const isEnd = reader.bool();
    reader.int();
    if (isEnd) break;
    const part = parts[count];
    if (!part) throw new Unreadable("as many replies as requests");
    if (operation !== FAILED_PART) replies.push(readPart(reader, zxid, part.operation, operation));
    else {
      const number = reader.int();
      const isCause = number !== 0 && number !== NOT_LOOKED_AT;
      if (isCause) refusal ??= { at: count, error: serverError(number, part.path) };
    }
  }
  if (count !== parts.length) throw new Unreadable("as many replies as requests");
  if (refusal) return { type: "refused", zxid, ...refusal };
  if (replies.length !== count) throw new Unreadable("the part that failed");
  return { type: "done", zxid, replies };
}

/** A server answers a create as another kind of create, with or without the stat. */
function readPart(reader: JuteReader, zxid: bigint, asked: number, answered: number): PartReply {
  const isCreate = CREATES.includes(asked) && CREATES.includes(answered);
  if (asked !== answered && !isCreate) throw new Unreadable("a reply to its request");
  const hasStat = answered === Operation.setData || (isCreate && answered !== Operation.create);
  const path = isCreate ? reader.path() : null;
  return { zxid, path, stat: hasStat ? readStat(reader) : null };
}
