/**
 * The client: gRPC over the HTTP/2 of Node, without a package.
 *
 * All calls go to one member, because a member that has reported a revision has it. After a call
 * that a member did not answer, the next call goes to the next member. A request is sent once,
 * unless etcd refuses it because the token of the user is old: it is then sent a second time.
 */
import type { WarningEvent } from "../../events/events.js";
import { Unreadable } from "../../events/foreign-data.js";
import { events } from "../../events/publish.js";
import type { Runtime } from "../../time/runtime.js";
import type { TlsFiles } from "../store-url.js";
import { type Sending, TimedCall } from "./calls.js";
import { OLD_TOKEN } from "./errors.js";
import { MessageStream, SingleReply, StatusError, type StreamListener } from "./wire/grpc.js";
import { type GrpcConnection, GrpcMember, type Metadata } from "./wire/http2.js";
import { AUTHENTICATE, type Credentials, type Method, readReply } from "./wire/messages.js";

/** Sends requests to etcd. */
export interface EtcdClient {
  /** `sending` starts each sending of the request, and may cancel it. */
  call<Request, Reply>(
    method: Method<Request, Reply>,
    request: Request,
    sending: Sending,
  ): Promise<Reply>;
  openStream<Request, Reply>(
    method: Method<Request, Reply>,
    listener: StreamListener<Reply>,
  ): Promise<EtcdStream<Request>>;
  close(): void;
}

export interface EtcdStream<Request> {
  write(request: Request): void;
  close(): void;
}

export interface ClientOptions {
  /** Host and port of each member. */
  readonly members: readonly string[];
  readonly tls: TlsFiles | null;
  readonly user: Credentials | null;
}

const UNAVAILABLE = 14;
/** etcd takes long to check a password, and longer while many processes log in. */
const LOGIN_MS = 5_000;

export class Http2Client implements EtcdClient {
  readonly #members: readonly GrpcMember[];
  readonly #user: Credentials | null;
  readonly #runtime: Runtime;
  #current: number;
  #login: Promise<Metadata> | null = null;

  constructor({ members, tls, user }: ClientOptions, runtime: Runtime) {
    this.#members = members.map((authority) => new GrpcMember(authority, tls, runtime));
    this.#user = user;
    this.#runtime = runtime;
    this.#current = Math.floor(runtime.random.fraction() * members.length);
  }

  async call<Request, Reply>(
    method: Method<Request, Reply>,
    request: Request,
    sending: Sending,
  ): Promise<Reply> {
    for (let isRepeated = false; ; isRepeated = true) {
      const login = this.#logIn();
      const metadata = login ? await login : {};
      try {
        return await this.#send(method, request, metadata, sending);
      } catch (error) {
        if (!this.#forgetOld(login, error) || isRepeated) throw error;
      }
    }
  }

  async openStream<Request, Reply>(
    method: Method<Request, Reply>,
    listener: StreamListener<Reply>,
  ): Promise<EtcdStream<Request>> {
    const login = this.#logIn();
    const token = await login;
    const metadata: Metadata = method.needsLeader ? { ...token, hasleader: "true" } : { ...token };
    const connection = this.#ready ?? (await this.#connect());
    const onEnd = (error: Error | null): void => {
      if (error) {
        this.#forgetOld(login, error);
        this.#onFailure(connection, error);
      }
      listener.onEnd(error);
    };
    const onReply = (reply: Reply): void => listener.onReply(reply);
    return new MessageStream(method, { onReply, onEnd }, (call) =>
      connection.start(method.path, metadata, call),
    );
  }

  close(): void {
    for (const member of this.#members) member.close();
  }

  async #send<Request, Reply>(
    method: Method<Request, Reply>,
    request: Request,
    metadata: Metadata,
    sending: Sending,
  ): Promise<Reply> {
    const message = method.request.encode(request);
    const connection = this.#ready ?? (await this.#connect());
    const reply = new SingleReply();
    sending.start(() => {
      const call = connection.start(method.path, metadata, reply);
      call.send(message, true);
      return call;
    });
    try {
      return readReply<Reply>(method, await reply.message);
    } catch (error) {
      this.#onFailure(connection, error);
      throw error;
    }
  }

  get #ready(): GrpcConnection | null {
    return this.#members[this.#current]?.ready ?? null;
  }

  /** Connects to the first reachable member, starting with the current one. */
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

  /** The next call does not go to a member that did not answer or has no leader. */
  #onFailure(connection: GrpcConnection, error: unknown): void {
    if (error instanceof Unreadable) return;
    if (error instanceof StatusError && error.code !== UNAVAILABLE) return;
    if (!(error instanceof StatusError)) connection.ping();
    if (this.#members[this.#current]?.has(connection)) this.#moveFrom(this.#current);
  }

  #moveFrom(at: number): void {
    if (this.#current === at) this.#current = (at + 1) % this.#members.length;
  }

  /** The token of the user, which one call asks for at a time. Null without a user. */
  #logIn(): Promise<Metadata> | null {
    if (!this.#user) return null;
    if (this.#login) return this.#login;
    const login = this.#authenticate(this.#user);
    this.#login = login;
    login.catch(() => this.#forget(login));
    return login;
  }

  #authenticate(user: Credentials): Promise<Metadata> {
    const { clock, timers } = this.#runtime;
    return new Promise((resolve, reject) => {
      const call = new TimedCall(LOGIN_MS, clock.nowMs(), { count: 0 }, reject);
      const timer = timers.after(LOGIN_MS, () => call.onDue());
      this.#send(AUTHENTICATE, user, {}, call)
        .finally(() => timer.cancel())
        .then(({ token }) => resolve({ token }), reject);
    });
  }

  /** Whether a call failed because its token is old. The next call then logs in again. */
  #forgetOld(login: Promise<Metadata> | null, error: unknown): boolean {
    if (!login || !(error instanceof StatusError) || !OLD_TOKEN.test(error.message)) return false;
    this.#forget(login);
    return true;
  }

  /** Keeps a login that began later: a call with the earlier token may fail after it. */
  #forget(login: Promise<Metadata>): void {
    if (this.#login === login) this.#login = null;
  }
}

/** Major, minor and patch. */
export function partsOf(version: string): [number, number, number] {
  const [major = 0, minor = 0, patch = 0] = version
    .split(".")
    .map((part) => Number.parseInt(part, 10));
  return [major, minor, patch];
}

/**
 * Whether a member that lost the lead, and was stopped meanwhile, may end leases that the new
 * leader keeps. etcd 3.4.31 and 3.5.13 ignore such a request of an old leader.
 */
export function mayEndLiveLeases(version: string): boolean {
  const [major, minor, patch] = partsOf(version);
  if (major !== 3 || minor < 4) return major < 4;
  return (minor === 4 && patch < 31) || (minor === 5 && patch < 13);
}

export const UPGRADE = "Upgrade etcd to 3.5.13 or later, and use guard() for writes to etcd.";

const CODE = "HF_ETCD_ENDS_LIVE_LEASES";

let hasWarned = false;

/** Publishes a warning; the first one of this process is a process warning as well. */
export function warnOfVersion(version: string, namespace: string): void {
  const message =
    `etcd ${version} may end live leases after its leader changed, and then two processes may ` +
    "hold the same lock.";
  const warning = { store: "etcd", namespace, code: CODE, message, remedy: UPGRADE };
  events.warning.publish(warning satisfies WarningEvent);
  if (hasWarned) return;
  hasWarned = true;
  process.emitWarning(`${message} ${UPGRADE}`, { type: "HoldfastWarning", code: CODE });
}
