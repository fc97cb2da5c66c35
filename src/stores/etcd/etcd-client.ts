/**
 * As much of an `etcd3` client as the store uses; keys are bytes, 64-bit numbers travel as text.
 */
export interface EtcdClient {
  /** Reads, writes and transactions of keys. */
  readonly kv: {
    txn(request: TxnRequest, options?: CallOptions): Promise<TxnReply>;
    range(request: RangeRequest, options?: CallOptions): Promise<RangeReply>;
    deleteRange(request: { readonly key: Buffer }, options?: CallOptions): Promise<DeleteReply>;
  };
  /** Leases of etcd, which the sessions of the store are. */
  readonly leaseClient: {
    leaseGrant(
      request: { readonly TTL: number; readonly ID: string },
      options?: CallOptions,
    ): Promise<unknown>;
    leaseRevoke(request: { readonly ID: string }, options?: CallOptions): Promise<unknown>;
    leaseTimeToLive(
      request: { readonly ID: string },
      options?: CallOptions,
    ): Promise<{ readonly TTL: string }>;
    leaseKeepAlive(): Promise<EtcdStream<{ readonly ID: string }, KeepAliveReply>>;
  };
  /** The stream of changes of keys. */
  readonly watchClient: {
    watch(): Promise<EtcdStream<WatchRequest, WatchReply>>;
  };
  /** The state of a member, and alarms: for an examination only. */
  readonly maintenance?: {
    status(options?: CallOptions): Promise<StatusReply>;
    alarm(request: { readonly action: "Get" }, options?: CallOptions): Promise<AlarmReply>;
  };
  /** The list of members: for an examination only. */
  readonly cluster?: {
    memberList(
      request: { readonly linearizable?: boolean },
      options?: CallOptions,
    ): Promise<MemberReply>;
  };
}

/** The options of a call. */
export interface CallOptions {
  /** Called for each time that the request is sent. */
  // biome-ignore lint/suspicious/noExplicitAny: the types belong to the transport of the client.
  readonly interceptors?: ((options: any, next: (options: any) => any) => any)[];
}

export interface Header {
  readonly revision: string;
  readonly raft_term: string;
}

export interface KeyValue {
  readonly key: Buffer;
  readonly value: Buffer;
  readonly create_revision: string;
  readonly mod_revision: string;
  readonly lease: string;
}

export interface RangeRequest {
  readonly key: Buffer;
  readonly range_end?: Buffer;
  readonly keys_only?: boolean;
  /** The member that is asked answers from its own data, which may be old. */
  readonly serializable?: boolean;
}

export interface RangeReply {
  readonly header: Header;
  readonly kvs: KeyValue[];
}

export interface DeleteReply {
  readonly header: Header;
  readonly deleted: string;
}

export interface Compare {
  readonly result: "Equal";
  readonly target: "Create" | "Mod";
  readonly key: Buffer;
  readonly range_end?: Buffer;
  readonly create_revision?: string;
  readonly mod_revision?: string;
}

export type RequestOp =
  | { readonly request_range: RangeRequest }
  | {
      readonly request_put: {
        readonly key: Buffer;
        readonly value?: Buffer;
        readonly lease?: string;
        readonly ignore_value?: boolean;
        readonly ignore_lease?: boolean;
      };
    }
  | { readonly request_delete_range: { readonly key: Buffer } }
  | { readonly request_txn: TxnRequest };

export interface TxnRequest {
  readonly compare?: Compare[];
  readonly success?: RequestOp[];
  readonly failure?: RequestOp[];
}

export interface TxnReply {
  readonly header: Header;
  readonly succeeded: boolean;
  readonly responses: ResponseOp[];
}

export interface ResponseOp {
  readonly response_range?: RangeReply;
  readonly response_delete_range?: DeleteReply;
  /** Without a header of its own. */
  readonly response_txn?: TxnReply;
}

export interface KeepAliveReply {
  readonly header: Header;
  readonly TTL: string;
}

export interface StatusReply {
  readonly header: Header;
  readonly version: string;
  readonly dbSize: string;
  /** The id of the leader; 0 where there is none. */
  readonly leader: string;
}

export interface AlarmReply {
  readonly alarms: readonly { readonly alarm: string }[];
}

export interface MemberReply {
  readonly header: Header;
  readonly members: readonly Member[];
}

/** A member of the cluster. */
export interface Member {
  /** Empty where the member has not started yet. */
  readonly name: string;
  readonly clientURLs: readonly string[];
  /** Etcd 3.4 and later: the member has no vote. */
  readonly isLearner?: boolean;
}

export type WatchRequest =
  | {
      readonly create_request: {
        readonly watch_id: number;
        readonly key: Buffer;
        readonly range_end?: Buffer;
        readonly start_revision: string;
        readonly prev_kv: boolean;
        readonly filters: ("Noput" | "Nodelete")[];
      };
    }
  | { readonly cancel_request: { readonly watch_id: number } };

export interface WatchEvent {
  readonly type: string;
  readonly kv: KeyValue;
  readonly prev_kv?: KeyValue | null;
}

export interface WatchReply {
  readonly header: Header;
  readonly watch_id: string;
  readonly created: boolean;
  readonly canceled: boolean;
  readonly events: WatchEvent[];
}

export interface EtcdStream<Request, Reply> {
  on(event: "data", listener: (reply: Reply) => void): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "end", listener: () => void): unknown;
  write(request: Request): unknown;
  end(): unknown;
  cancel(): void;
}
