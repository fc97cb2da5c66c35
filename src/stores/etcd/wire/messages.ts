/** The methods and messages of etcd that the store uses, with the fields that it uses. */
import { Unreadable } from "../../../events/foreign-data.js";
import { Message } from "./protobuf.js";

/** A method of etcd: its path and its messages. */
export interface Method<Request, Reply> {
  readonly path: string;
  readonly request: Message<Request>;
  readonly reply: Message<Reply>;
  /** Its replies have no header. */
  readonly isHeaderless?: boolean;
  /** The member refuses or ends the call if it has lost its leader. */
  readonly needsLeader?: boolean;
}

/** Decodes a reply. Defaults would pass for an answer, so a reply without a header is refused. */
export function readReply<T>(
  { reply, isHeaderless = false }: Pick<Method<never, T>, "reply" | "isHeaderless">,
  bytes: Buffer,
): T {
  const read = reply.decode(bytes);
  if (isHeaderless || (read as { header?: unknown }).header) return read;
  throw new Unreadable("a reply with a header");
}

export interface Header {
  readonly revision: bigint;
  readonly raftTerm: bigint;
}

const HEADER: Message = new Message(() => ({ revision: [3, "int"], raftTerm: [4, "int"] }));

export interface KeyValue {
  readonly key: Buffer;
  readonly value: Buffer;
  readonly createRevision: bigint;
  readonly modRevision: bigint;
  /** 0 without a lease. */
  readonly lease: bigint;
}

const KEY_VALUE: Message = new Message(() => ({
  key: [1, "bytes"],
  createRevision: [2, "int"],
  modRevision: [3, "int"],
  value: [5, "bytes"],
  lease: [6, "int"],
}));

/** All keys from `key` up to, but without, `rangeEnd`. */
export interface KeyRange {
  readonly key: Buffer;
  readonly rangeEnd: Buffer;
}

export interface RangeRequest {
  readonly key: Buffer;
  readonly rangeEnd?: Buffer;
  readonly keysOnly?: boolean;
  /** The member answers from its own data, which may be old. */
  readonly serializable?: boolean;
}

const RANGE_REQUEST: Message<RangeRequest> = new Message(() => ({
  key: [1, "bytes"],
  rangeEnd: [2, "bytes"],
  serializable: [7, "bool"],
  keysOnly: [8, "bool"],
}));

export interface RangeReply {
  readonly header: Header;
  readonly kvs: KeyValue[];
}

const RANGE_REPLY: Message<RangeReply> = new Message(() => ({
  header: [1, HEADER],
  kvs: [2, KEY_VALUE, "list"],
}));

export interface PutRequest {
  readonly key: Buffer;
  readonly value?: Buffer;
  readonly lease?: bigint;
  readonly ignoreValue?: boolean;
  readonly ignoreLease?: boolean;
}

const PUT_REQUEST: Message = new Message(() => ({
  key: [1, "bytes"],
  value: [2, "bytes"],
  lease: [3, "int"],
  ignoreValue: [5, "bool"],
  ignoreLease: [6, "bool"],
}));

export interface DeleteRequest {
  readonly key: Buffer;
}

const DELETE_REQUEST: Message<DeleteRequest> = new Message(() => ({ key: [1, "bytes"] }));

export interface DeleteReply {
  readonly header: Header;
  /** How many keys were deleted. */
  readonly deleted: bigint;
}

const DELETE_REPLY: Message<DeleteReply> = new Message(() => ({
  header: [1, HEADER],
  deleted: [2, "int"],
}));

export interface Compare {
  readonly result: "Equal";
  readonly target: "Create" | "Mod";
  readonly key: Buffer;
  readonly rangeEnd?: Buffer;
  readonly createRevision?: bigint;
  readonly modRevision?: bigint;
}

const COMPARE: Message = new Message(() => ({
  result: [1, ["Equal"]],
  target: [2, ["Version", "Create", "Mod"]],
  key: [3, "bytes"],
  createRevision: [5, "int"],
  modRevision: [6, "int"],
  rangeEnd: [64, "bytes"],
}));

export type RequestOp =
  | { readonly requestRange: RangeRequest }
  | { readonly requestPut: PutRequest }
  | { readonly requestDeleteRange: DeleteRequest }
  | { readonly requestTxn: TxnRequest };

const REQUEST_OP: Message = new Message(() => ({
  requestRange: [1, RANGE_REQUEST],
  requestPut: [2, PUT_REQUEST],
  requestDeleteRange: [3, DELETE_REQUEST],
  requestTxn: [4, TXN_REQUEST],
}));

export interface TxnRequest {
  readonly compare?: Compare[];
  readonly success?: RequestOp[];
  readonly failure?: RequestOp[];
}

const TXN_REQUEST: Message<TxnRequest> = new Message(() => ({
  compare: [1, COMPARE, "list"],
  success: [2, REQUEST_OP, "list"],
  failure: [3, REQUEST_OP, "list"],
}));

export interface TxnReply {
  readonly header: Header;
  readonly succeeded: boolean;
  readonly responses: ResponseOp[];
}

const TXN_REPLY: Message<TxnReply> = new Message(() => ({
  header: [1, HEADER],
  succeeded: [2, "bool"],
  responses: [3, RESPONSE_OP, "list"],
}));

export interface ResponseOp {
  readonly responseRange?: RangeReply;
  readonly responseDeleteRange?: DeleteReply;
  /** Without a header. */
  readonly responseTxn?: TxnReply;
}

const RESPONSE_OP: Message = new Message(() => ({
  responseRange: [1, RANGE_REPLY],
  responseDeleteRange: [3, DELETE_REPLY],
  responseTxn: [4, TXN_REPLY],
}));

export interface LeaseRequest {
  readonly id: bigint;
}

const LEASE_REQUEST: Message<LeaseRequest> = new Message(() => ({ id: [1, "int"] }));

export interface GrantRequest extends LeaseRequest {
  /** Seconds. */
  readonly ttl: bigint;
}

const GRANT_REQUEST: Message<GrantRequest> = new Message(() => ({
  ttl: [1, "int"],
  id: [2, "int"],
}));

export interface LeaseReply {
  readonly header: Header;
  /** Seconds; 0 or less if there is no such lease. */
  readonly ttl: bigint;
}

const LEASE_REPLY: Message<LeaseReply> = new Message(() => ({
  header: [1, HEADER],
  ttl: [3, "int"],
}));

const HEADER_ONLY: Message = new Message(() => ({ header: [1, HEADER] }));

export interface WatchCreate {
  readonly key: Buffer;
  readonly rangeEnd?: Buffer;
  readonly watchId: bigint;
  /** 0: the next revision. */
  readonly startRevision: bigint;
  readonly prevKv: boolean;
  readonly filters: ("Noput" | "Nodelete")[];
}

const WATCH_CREATE: Message = new Message(() => ({
  key: [1, "bytes"],
  rangeEnd: [2, "bytes"],
  startRevision: [3, "int"],
  filters: [5, ["Noput", "Nodelete"], "list"],
  prevKv: [6, "bool"],
  watchId: [7, "int"],
}));

export type WatchRequest =
  | { readonly createRequest: WatchCreate }
  | { readonly cancelRequest: { readonly watchId: bigint } };

const WATCH_CANCEL: Message = new Message(() => ({ watchId: [1, "int"] }));

const WATCH_REQUEST: Message<WatchRequest> = new Message(() => ({
  createRequest: [1, WATCH_CREATE],
  cancelRequest: [2, WATCH_CANCEL],
}));

export interface WatchEvent {
  readonly type: "Put" | "Delete";
  readonly kv: KeyValue;
  readonly prevKv?: KeyValue | undefined;
}

const EVENT: Message = new Message(() => ({
  type: [1, ["Put", "Delete"]],
  kv: [2, KEY_VALUE],
  prevKv: [3, KEY_VALUE],
}));

export interface WatchReply {
  readonly header: Header;
  readonly watchId: bigint;
  readonly created: boolean;
  readonly canceled: boolean;
  readonly events: WatchEvent[];
}

const WATCH_REPLY: Message<WatchReply> = new Message(() => ({
  header: [1, HEADER],
  watchId: [2, "int"],
  created: [3, "bool"],
  canceled: [4, "bool"],
  events: [11, EVENT, "list"],
}));

export interface Credentials {
  readonly name: string;
  readonly password: string;
}

const LOGIN: Message<Credentials> = new Message(() => ({
  name: [1, "text"],
  password: [2, "text"],
}));

const LOGIN_REPLY: Message<{ readonly token: string }> = new Message(() => ({
  header: [1, HEADER],
  token: [2, "text"],
}));

const NOTHING: Message<Record<string, never>> = new Message(() => ({}));

export interface StatusReply {
  readonly header: Header;
  readonly version: string;
  /** The id of the leader; 0 without one. */
  readonly leader: bigint;
}

const STATUS_REPLY: Message<StatusReply> = new Message(() => ({
  header: [1, HEADER],
  version: [2, "text"],
  leader: [4, "int"],
}));

const ALARM_REQUEST: Message<{ readonly action: "Get" }> = new Message(() => ({
  action: [1, ["Get"]],
}));

const ALARM: Message = new Message(() => ({ alarm: [2, ["None", "Nospace", "Corrupt"]] }));

const ALARM_REPLY: Message<{ readonly alarms: readonly { readonly alarm: string }[] }> =
  new Message(() => ({ alarms: [2, ALARM, "list"] }));

/** A member of the cluster. */
export interface Member {
  /** Empty if the member has not started yet. */
  readonly name: string;
  readonly clientURLs: readonly string[];
  /** The member has no vote. */
  readonly isLearner?: boolean;
}

const MEMBER: Message = new Message(() => ({
  name: [2, "text"],
  clientURLs: [4, "text", "list"],
  isLearner: [5, "bool"],
}));

const MEMBERS_REPLY: Message<{ readonly members: readonly Member[] }> = new Message(() => ({
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
export const DELETE: Method<DeleteRequest, DeleteReply> = method(
  "KV/DeleteRange",
  DELETE_REQUEST,
  DELETE_REPLY,
);
export const GRANT: Method<GrantRequest, unknown> = method(
  "Lease/LeaseGrant",
  GRANT_REQUEST,
  HEADER_ONLY,
);
export const REVOKE: Method<LeaseRequest, unknown> = method(
  "Lease/LeaseRevoke",
  LEASE_REQUEST,
  HEADER_ONLY,
);
export const TIME_TO_LIVE: Method<LeaseRequest, LeaseReply> = method(
  "Lease/LeaseTimeToLive",
  LEASE_REQUEST,
  LEASE_REPLY,
);
/** A stream that ends after the first request, so it has one reply. */
export const KEEP_ALIVE: Method<LeaseRequest, LeaseReply> = method(
  "Lease/LeaseKeepAlive",
  LEASE_REQUEST,
  LEASE_REPLY,
);
/** A stream. At a member that has lost its leader, a watch would be silent. */
export const WATCH: Method<WatchRequest, WatchReply> = {
  ...method("Watch/Watch", WATCH_REQUEST, WATCH_REPLY),
  needsLeader: true,
};
export const AUTHENTICATE: Method<Credentials, { readonly token: string }> = method(
  "Auth/Authenticate",
  LOGIN,
  LOGIN_REPLY,
);
export const STATUS: Method<Record<string, never>, StatusReply> = method(
  "Maintenance/Status",
  NOTHING,
  STATUS_REPLY,
);
export const ALARMS: Method<
  { readonly action: "Get" },
  { readonly alarms: readonly { readonly alarm: string }[] }
> = {
  ...method("Maintenance/Alarm", ALARM_REQUEST, ALARM_REPLY),
  isHeaderless: true,
};
export const MEMBERS: Method<
  Record<string, never>,
  { readonly members: readonly Member[] }
> = method("Cluster/MemberList", NOTHING, MEMBERS_REPLY);
