/** Several writes and checks in one transaction: all of them are done, or none. */
import { Unreadable } from "../../../events/foreign-data.js";
import type { JuteReader } from "./jute.js";
import { type Created, Operation, type Request, type StatReply, type Timed } from "./requests.js";
import { readStat, type Stat } from "./stat.js";
import { serverError, type ZookeeperError } from "./zookeeper-error.js";

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
