/** The messages of etcd that this store sends and reads, with the fields that it uses. */

import { Unreadable } from "../../foreign-data.js";
import type {
  AlarmReply,
  DeleteReply,
  KeepAliveReply,
  MemberReply,
  RangeReply,
  RangeRequest,
  StatusReply,
  TxnReply,
  TxnRequest,
  WatchReply,
  WatchRequest,
} from "./etcd-client.js";
import { Message } from "./protobuf.js";

/** A method of etcd: where it is, and its messages. */
export interface Method<Request, Reply> {
  readonly path: string;
  readonly request: Message<Request>;
  readonly reply: Message<Reply>;
  /** Its replies have no header. */
  readonly isBare?: boolean;
}

/** A reply of etcd has a header: without one, its defaults would pass for an answer. */
export function readReply<T>(
  { reply, isBare = false }: Pick<Method<never, T>, "reply" | "isBare">,
  bytes: Buffer,
): T {
  const read = reply.decode(bytes);
  if (!isBare && !(read as { header?: unknown }).header)
    throw new Unreadable("a reply with a header");
  return read;
}

const HEADER: Message = new Message(() => ({ revision: [3, "int"], raft_term: [4, "int"] }));

const KEY_VALUE: Message = new Message(() => ({
  key: [1, "bytes"],
  create_revision: [2, "int"],
  mod_revision: [3, "int"],
  value: [5, "bytes"],
  lease: [6, "int"],
}));

const RANGE_REQUEST: Message<RangeRequest> = new Message(() => ({
  key: [1, "bytes"],
  range_end: [2, "bytes"],
  serializable: [7, "bool"],
  keys_only: [8, "bool"],
}));

const RANGE_REPLY: Message<RangeReply> = new Message(() => ({
  header: [1, HEADER],
  kvs: [2, KEY_VALUE, "list"],
}));

const PUT_REQUEST: Message = new Message(() => ({
  key: [1, "bytes"],
  value: [2, "bytes"],
  lease: [3, "int"],
  ignore_value: [5, "bool"],
  ignore_lease: [6, "bool"],
}));

const DELETE_REQUEST: Message<{ readonly key: Buffer }> = new Message(() => ({
  key: [1, "bytes"],
}));

const DELETE_REPLY: Message<DeleteReply> = new Message(() => ({
  header: [1, HEADER],
  deleted: [2, "int"],
}));

const COMPARE: Message = new Message(() => ({
  result: [1, ["Equal"]],
  target: [2, ["Version", "Create", "Mod"]],
  key: [3, "bytes"],
  create_revision: [5, "int"],
  mod_revision: [6, "int"],
  range_end: [64, "bytes"],
}));

const TXN_REQUEST: Message<TxnRequest> = new Message(() => ({
  compare: [1, COMPARE, "list"],
  success: [2, REQUEST_OP, "list"],
  failure: [3, REQUEST_OP, "list"],
}));

const REQUEST_OP: Message = new Message(() => ({
  request_range: [1, RANGE_REQUEST],
  request_put: [2, PUT_REQUEST],
  request_delete_range: [3, DELETE_REQUEST],
  request_txn: [4, TXN_REQUEST],
}));

const TXN_REPLY: Message<TxnReply> = new Message(() => ({
  header: [1, HEADER],
  succeeded: [2, "bool"],
  responses: [3, RESPONSE_OP, "list"],
}));

const RESPONSE_OP: Message = new Message(() => ({
  response_range: [1, RANGE_REPLY],
  response_delete_range: [3, DELETE_REPLY],
  response_txn: [4, TXN_REPLY],
}));

const LEASE: Message<{ readonly ID: string }> = new Message(() => ({ ID: [1, "int"] }));

const GRANT_REQUEST: Message<{ readonly TTL: number; readonly ID: string }> = new Message(() => ({
  TTL: [1, "int"],
  ID: [2, "int"],
}));

const LEASE_REPLY: Message<KeepAliveReply> = new Message(() => ({
  header: [1, HEADER],
  TTL: [3, "int"],
}));

const NOTHING: Message = new Message(() => ({ header: [1, HEADER] }));

const WATCH_CREATE: Message = new Message(() => ({
  key: [1, "bytes"],
  range_end: [2, "bytes"],
  start_revision: [3, "int"],
  filters: [5, ["Noput", "Nodelete"], "list"],
  prev_kv: [6, "bool"],
  watch_id: [7, "int"],
}));

const WATCH_CANCEL: Message = new Message(() => ({ watch_id: [1, "int"] }));

const WATCH_REQUEST: Message<WatchRequest> = new Message(() => ({
  create_request: [1, WATCH_CREATE],
  cancel_request: [2, WATCH_CANCEL],
}));

const EVENT: Message = new Message(() => ({
  type: [1, ["Put", "Delete"]],
  kv: [2, KEY_VALUE],
  prev_kv: [3, KEY_VALUE],
}));

const WATCH_REPLY: Message<WatchReply> = new Message(() => ({
  header: [1, HEADER],
  watch_id: [2, "int"],
  created: [3, "bool"],
  canceled: [4, "bool"],
  events: [11, EVENT, "list"],
}));

const LOGIN: Message<{ readonly name: string; readonly password: string }> = new Message(() => ({
  name: [1, "text"],
  password: [2, "text"],
}));

const LOGIN_REPLY: Message<{ readonly token: string }> = new Message(() => ({
  header: [1, HEADER],
  token: [2, "text"],
}));

const EMPTY: Message<Record<string, never>> = new Message(() => ({}));

const STATUS_REPLY: Message<StatusReply> = new Message(() => ({
  header: [1, HEADER],
  version: [2, "text"],
  dbSize: [3, "int"],
  leader: [4, "int"],
}));

const ALARM_REQUEST: Message<{ readonly action: "Get" }> = new Message(() => ({
  action: [1, ["Get"]],
}));

const ALARM: Message = new Message(() => ({ alarm: [2, ["None", "Nospace", "Corrupt"]] }));

const ALARM_REPLY: Message<AlarmReply> = new Message(() => ({
  alarms: [2, ALARM, "list"],
}));

const MEMBER: Message = new Message(() => ({
  name: [2, "text"],
  clientURLs: [4, "text", "list"],
  isLearner: [5, "bool"],
}));

const MEMBER_REQUEST: Message<{ readonly linearizable?: boolean }> = new Message(() => ({
  linearizable: [1, "bool"],
}));

const MEMBER_REPLY: Message<MemberReply> = new Message(() => ({
  header: [1, HEADER],
  members: [2, MEMBER, "list"],
}));

function method<Request, Reply>(
  name: string,
  request: Message<Request>,
  reply: Message<Reply>,
): Method<Request, Reply> {
  return { path: `/etcdserverpb.${name}`, request, reply };
}

export const TXN: Method<TxnRequest, TxnReply> = method("KV/Txn", TXN_REQUEST, TXN_REPLY);
export const RANGE: Method<RangeRequest, RangeReply> = method(
  "KV/Range",
  RANGE_REQUEST,
  RANGE_REPLY,
);
export const DELETE: Method<{ readonly key: Buffer }, DeleteReply> = method(
  "KV/DeleteRange",
  DELETE_REQUEST,
  DELETE_REPLY,
);
export const GRANT: Method<{ readonly TTL: number; readonly ID: string }, unknown> = method(
  "Lease/LeaseGrant",
  GRANT_REQUEST,
  NOTHING,
);
export const REVOKE: Method<{ readonly ID: string }, unknown> = method(
  "Lease/LeaseRevoke",
  LEASE,
  NOTHING,
);
export const TIME_TO_LIVE: Method<{ readonly ID: string }, { readonly TTL: string }> = method(
  "Lease/LeaseTimeToLive",
  LEASE,
  LEASE_REPLY,
);
export const KEEP_ALIVE: Method<{ readonly ID: string }, KeepAliveReply> = method(
  "Lease/LeaseKeepAlive",
  LEASE,
  LEASE_REPLY,
);
export const WATCH: Method<WatchRequest, WatchReply> = method(
  "Watch/Watch",
  WATCH_REQUEST,
  WATCH_REPLY,
);
export const AUTHENTICATE: Method<
  { readonly name: string; readonly password: string },
  { readonly token: string }
> = method("Auth/Authenticate", LOGIN, LOGIN_REPLY);
export const STATUS: Method<Record<string, never>, StatusReply> = method(
  "Maintenance/Status",
  EMPTY,
  STATUS_REPLY,
);
export const ALARMS: Method<{ readonly action: "Get" }, AlarmReply> = {
  ...method("Maintenance/Alarm", ALARM_REQUEST, ALARM_REPLY),
  isBare: true,
};
export const MEMBERS: Method<{ readonly linearizable?: boolean }, MemberReply> = method(
  "Cluster/MemberList",
  MEMBER_REQUEST,
  MEMBER_REPLY,
);
