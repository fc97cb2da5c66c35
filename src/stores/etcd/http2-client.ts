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
  ALARMS,
  AUTHENTICATE,
  DELETE,
  GRANT,
  KEEP_ALIVE,
  MEMBERS,
  type Method,
  RANGE,
  REVOKE,
  readReply,
  STATUS,
  TIME_TO_LIVE,
  TXN,
  WATCH,
} from "./etcd-messages.js";
import { OLD_TOKEN } from "./failure.js";
import { type CallListener, StatusError } from "./grpc-call.js";
import type { GrpcConnection, Metadata } from "./grpc-connection.js";
import { GrpcMember } from "./grpc-member.js";
import { GrpcStream } from "./grpc-stream.js";
import { TimedCall } from "./timed-call.js";

export interface Http2Options {
  /** Host and port of each member. */
  readonly members: readonly string[];
  readonly tls: TlsFiles | null;
  readonly user: { readonly name: string; readonly password: string } | null;
}

const UNAVAILABLE = 14;
/** etcd takes long to check a password, and longer where many processes log in at a time. */
const LOGIN_MS = 5_000;

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
  readonly watchClient: EtcdClient["watchClient"] = {
    // A watch at a member that has lost its leader ends: it would be silent.
    watch: () => this.#stream(WATCH, { hasleader: "true" }),
  };
  readonly maintenance: NonNullable<EtcdClient["maintenance"]> = {
    status: (options) => this.#call(STATUS, {}, options),
    alarm: (request, options) => this.#call(ALARMS, request, options),
  };
  readonly cluster: NonNullable<EtcdClient["cluster"]> = {
    memberList: (request, options) => this.#call(MEMBERS, request, options),
  };
  readonly #members: readonly GrpcMember[];
  readonly #user: Http2Options["user"];
  readonly #port: Port;
  #current: number;
  #login: Promise<Metadata> | null = null;

  constructor({ members, tls, user }: Http2Options, port: Port) {
    this.#members = members.map((authority) => new GrpcMember(authority, tls, port));
    this.#user = user;
    this.#port = port;
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
      const login = this.#loggedIn();
      const metadata = login ? await login : {};
      try {
        return await this.#send(method, value, metadata, options);
      } catch (error) {
        if (!this.#forgetOld(login, error) || isRepeated) throw error;
      }
    }
  }

  async #stream<Request, Reply>(
    method: Method<Request, Reply>,
    metadata: Metadata = {},
  ): Promise<GrpcStream<Request, Reply>> {
    const login = this.#loggedIn();
    const all = { ...metadata, ...(await login) };
    const connection = this.#ready ?? (await this.#connect());
    return new GrpcStream(method, connection, all, (error) => {
      this.#forgetOld(login, error);
      this.#onFailure(connection, error);
    });
  }

  async #send<Request, Reply>(
    method: Method<Request, Reply>,
    value: Request,
    metadata: Metadata,
    { interceptors: [intercept] = [] }: CallOptions = {},
  ): Promise<Reply> {
    const message = method.request.encode(value);
    const connection = this.#ready ?? (await this.#connect());
    const answer = new Answer();
    const start = (): { cancelWithStatus(): void } => {
      const call = connection.start(method.path, metadata, answer);
      call.send(message, true);
      return { cancelWithStatus: () => call.cancel() };
    };
    if (intercept) intercept({}, start);
    else start();
    try {
      return readReply<Reply>(method, await answer.message);
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

  /** The token of the user; one call at a time asks for it. Null where etcd has no users. */
  #loggedIn(): Promise<Metadata> | null {
    if (!this.#user) return null;
    if (this.#login) return this.#login;
    const login = this.#authenticate(this.#user);
    this.#login = login;
    login.catch(() => this.#forget(login));
    return login;
  }

  #authenticate(user: NonNullable<Http2Options["user"]>): Promise<Metadata> {
    const { clock, timers } = this.#port;
    return new Promise((resolve, reject) => {
      const call = new TimedCall(LOGIN_MS, clock.nowMs(), { count: 0 }, reject);
      const timer = timers.after(LOGIN_MS, () => call.onDue());
      this.#send(AUTHENTICATE, user, {}, call.options)
        .finally(() => timer.cancel())
        .then(({ token }) => resolve({ token }), reject);
    });
  }

  /** Whether the failure of a call is that its token is old; the next call then logs in again. */
  #forgetOld(login: Promise<Metadata> | null, error: unknown): boolean {
    if (!login || !(error instanceof StatusError) || !OLD_TOKEN.test(error.message)) return false;
    this.#forget(login);
    return true;
  }

  /** A login that began later stays: a call with the former token may fail after it. */
  #forget(login: Promise<Metadata>): void {
    if (this.#login === login) this.#login = null;
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
    if (this.#received) return this.#reject(new Unreadable("one message"));
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
