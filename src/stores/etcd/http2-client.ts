/**
 * The client of a URL: gRPC over the HTTP/2 of Node, without a package.
 *
 * All calls go to one member: a member that told a revision has it. After a call that a member did
 * not answer, the next call goes to the next member. A request is sent once. Only a request that
 * etcd refused because its token is old is sent again, and that counts as a second sending.
 */
import { Unreadable } from "../../foreign-data.js";
import type { Port } from "../../time/port.js";
import type { TlsFiles } from "../store-url.js";
import type { CallOptions, EtcdClient } from "./etcd-client.js";
import {
  AUTHENTICATE,
  DELETE,
  GRANT,
  KEEP_ALIVE,
  type Method,
  RANGE,
  REVOKE,
  TIME_TO_LIVE,
  TXN,
  WATCH,
} from "./etcd-messages.js";
import { type CallListener, StatusError } from "./grpc-call.js";
import type { GrpcConnection } from "./grpc-connection.js";
import { GrpcMember } from "./grpc-member.js";
import { GrpcStream } from "./grpc-stream.js";

export interface Http2Options {
  /** Host and port of each member. */
  readonly members: readonly string[];
  readonly tls: TlsFiles | null;
  readonly user: { readonly name: string; readonly password: string } | null;
}

const UNAVAILABLE = 14;

export class Http2Client implements EtcdClient {
  readonly kv: EtcdClient["kv"] = {
    txn: (request, options) => this.#call(TXN, request, options),
    range: (request, options) => this.#call(RANGE, request, options),
    deleteRange: (request, options) => this.#call(DELETE, request, options),
  };
  readonly leaseClient: EtcdClient["leaseClient"] = {
    leaseGrant: (request, options) => this.#call(GRANT, request, options),
    leaseRevoke: (request, options) => this.#call(REVOKE, request, options),
    leaseTimeToLive: (request, options) => this.#call(TIME_TO_LIVE, request, options),
    leaseKeepAlive: () => this.#stream(KEEP_ALIVE),
  };
  readonly watchClient: EtcdClient["watchClient"] = { watch: () => this.#stream(WATCH) };
  readonly #members: readonly GrpcMember[];
  readonly #user: Http2Options["user"];
  #current: number;
  /** Empty where etcd has no users. */
  #token: Promise<string> | null = null;

  constructor({ members, tls, user }: Http2Options, port: Port) {
    this.#members = members.map((authority) => new GrpcMember(authority, tls, port));
    this.#user = user;
    this.#current = Math.floor(port.random.fraction() * members.length);
  }

  close(): void {
    for (const member of this.#members) member.close();
  }

  async #call<Request, Reply>(
    method: Method<Request, Reply>,
    value: Request,
    options?: CallOptions,
  ): Promise<Reply> {
    for (let isRepeated = false; ; isRepeated = true) {
      const token = this.#user ? await this.#login(this.#user) : "";
      try {
        return await this.#send(method, value, token, options);
      } catch (error) {
        if (isRepeated || !this.#user || !isTokenOld(error)) throw error;
        this.#token = null;
      }
    }
  }

  async #stream<Request, Reply>(
    method: Method<Request, Reply>,
  ): Promise<GrpcStream<Request, Reply>> {
    const token = this.#user ? await this.#login(this.#user) : "";
    const connection = this.#ready ?? (await this.#connect());
    return new GrpcStream(method, { connection, token }, (error) => {
      this.#onFailure(connection, error);
    });
  }

  async #send<Request, Reply>(
    { path, request, reply }: Method<Request, Reply>,
    value: Request,
    token: string,
    { interceptors: [intercept] = [] }: CallOptions = {},
  ): Promise<Reply> {
    const connection = this.#ready ?? (await this.#connect());
    const answer = new Answer();
    const start = (): { cancelWithStatus(): void } => {
      const call = connection.start(path, token, answer);
      call.send(request.encode(value), true);
      return { cancelWithStatus: () => call.cancel() };
    };
    if (intercept) intercept({}, start);
    else start();
    try {
      return reply.decode(await answer.message);
    } catch (error) {
      this.#onFailure(connection, error);
      throw error;
    }
  }

  get #ready(): GrpcConnection | null {
    return this.#members[this.#current]?.ready ?? null;
  }

  /** A connection to the first member, from the current one on, that can be reached. */
  async #connect(): Promise<GrpcConnection> {
    let failure: unknown;
    for (let tries = 0; tries < this.#members.length; tries += 1) {
      const at = this.#current;
      try {
        return await (this.#members[at] as GrpcMember).connect();
      } catch (error) {
        failure = error;
        this.#moveFrom(at);
      }
    }
    throw failure;
  }

  /** A member that did not answer, or has no leader, is not asked next. */
  #onFailure(connection: GrpcConnection, error: unknown): void {
    if (error instanceof Unreadable) return;
    if (error instanceof StatusError && error.code !== UNAVAILABLE) return;
    if (!(error instanceof StatusError)) connection.ping();
    if (this.#members[this.#current]?.has(connection)) this.#moveFrom(this.#current);
  }

  #moveFrom(at: number): void {
    if (this.#current === at) this.#current = (at + 1) % this.#members.length;
  }

  /** The token of the user; one call at a time asks for it. */
  #login(user: NonNullable<Http2Options["user"]>): Promise<string> {
    this.#token ??= this.#send(AUTHENTICATE, user, "").then(
      ({ token }) => token,
      (error) => {
        this.#token = null;
        throw error;
      },
    );
    return this.#token;
  }
}

/** The one message that answers a call, once etcd has told that the call succeeded. */
class Answer implements CallListener {
  readonly message: Promise<Buffer>;
  #resolve: (message: Buffer) => void = () => {};
  #reject: (error: Error) => void = () => {};
  #received: Buffer | null = null;
  #isOk = false;

  constructor() {
    this.message = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  onMessage(message: Buffer): void {
    this.#received = message;
    if (this.#isOk) this.#resolve(message);
  }

  onStatus(error: Error | null): void {
    if (error) return this.#reject(error);
    this.#isOk = true;
    if (this.#received) this.#resolve(this.#received);
  }

  onClose(reason: string): void {
    // An error is costly to make, and most calls have their answer.
    if (!this.#isOk || !this.#received) this.#reject(new Error(reason));
  }
}

function isTokenOld(error: unknown): boolean {
  return error instanceof StatusError && error.message.includes("invalid auth token");
}
