/**
 * A fence for a service that others write to over HTTP. The client sends the name of the lock and
 * its token; the service refuses a token below the highest one that it has seen, with status 412.
 *
 * A client chooses neither the lock nor how high the fence goes: the service says which lock guards
 * a resource (`lockOf`), and which token is the highest that can have been granted by now
 * (`maxToken`). Otherwise one request could pass under the name of another lock, or lock all
 * rightful holders out.
 *
 * Why a late write cannot overtake: the requests under one lock run one after the other. A request
 * that has passed ends before the next one begins, so the write of an earlier holder is done when
 * the later holder passes, and every request of the earlier one that comes after that is refused. A
 * handler that never ends keeps the later ones waiting, so it needs a time limit of its own.
 * A service of several processes has as many fences: there the storage has to compare.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { type Fenced, invalidValue, StaleTokenError } from "../errors/index.js";
import { knownOptions } from "../options/known-options.js";
import { nameProblem } from "../rules/name.js";
import { localRuntime } from "../time/runtime.js";

const TOKEN_HEADER = "fencing-token";
const LOCK_HEADER = "fencing-lock";
const STALE = 412;
const MISSING = 428;
const MALFORMED = 400;
const FULL = 503;

const HOUR_US = 3_600_000_000n;
const MAX_LOCKS = 10_000;

const EXAMPLE = 'must be an object: httpFence({ lockOf: () => "camera:3" })';
const NEEDS_LOCK = "must be a function that names the lock of a request";

/** The headers that tell a service about the lease: for clients other than `fetch`. */
export function fenceHeaders({ name, token }: Fenced): Record<string, string> {
  return { [LOCK_HEADER]: encodeURIComponent(name), [TOKEN_HEADER]: `${token}` };
}

/**
 * `fetch` under a lease: sends its token, ends when the lease is lost, and throws `StaleTokenError`
 * where the service has heard from a later holder.
 *
 * @example
 * import { fencedFetch } from "holdfast/fence";
 *
 * await locks.mutex("camera:3").run(async (lease) => {
 *   await fencedFetch(lease, "https://cameras.example/3/tilt", { method: "PUT" });
 * });
 */
export async function fencedFetch(
  lease: Fenced & { readonly signal?: AbortSignal },
  input: string | URL,
  init: RequestInit = {},
): Promise<Response> {
  const headers = new Headers(init.headers);
  for (const [header, value] of Object.entries(fenceHeaders(lease))) headers.set(header, value);
  const signals = [lease.signal, init.signal].filter((signal) => signal instanceof AbortSignal);
  const signal = signals.length > 0 ? { signal: AbortSignal.any(signals) } : {};
  const response = await fetch(input, { ...init, headers, ...signal });
  const highest = response.headers.get(TOKEN_HEADER);
  // Other services have other reasons for this status.
  if (response.status !== STALE || highest === null) return response;
  response.body?.cancel().catch(() => {});
  throw new StaleTokenError(lease, isToken(highest) ? BigInt(highest) : null);
}

/** Keeps the highest tokens of a service. */
export interface HighestTokens {
  /** The highest token of the lock; 0 where there was none. */
  highest(lock: string): bigint | Promise<bigint>;
  /** Keeps the token, which is the highest one now. Done before the request is handled. */
  keep(lock: string, token: bigint): void | Promise<void>;
}

/** How a service is guarded. */
export interface HttpFenceOptions {
  /**
   * The name of the lock that guards what a request asks for; null lets the request pass,
   * unguarded. A request under another lock is refused with status 400.
   */
  lockOf(request: Request | IncomingMessage): string | null | Promise<string | null>;
  /**
   * The highest token that can have been granted by now: a higher one is refused with status 400,
   * and not kept. Default: an hour ahead of this clock, in microseconds. That limits tokens of all
   * stores but etcd and ZooKeeper, whose tokens are counters: there, ask the store.
   */
  readonly maxToken?: (lock: string) => bigint | Promise<bigint>;
  /**
   * Default: in this process, forgotten when it ends, for at most 10,000 locks; requests under
   * further ones are refused with status 503. A service keeps them with its data.
   */
  readonly memory?: HighestTokens;
  /** Lets requests without a token pass, unguarded. Default: they are refused with status 428. */
  readonly isOptional?: boolean;
}

/** Handles a request of `node:http`; settles when nothing more is written for it. */
export type HandlesRequest = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

type Verdict = { readonly status: number; readonly headers: Record<string, string>; text: string };

/** A guard before a service. */
export class HttpFence {
  readonly #lockOf: HttpFenceOptions["lockOf"];
  readonly #maxToken: NonNullable<HttpFenceOptions["maxToken"]>;
  readonly #memory: HighestTokens;
  readonly #isOptional: boolean;
  /** The end of the last request under each lock that has one. */
  readonly #last = new Map<string, Promise<void>>();

  constructor(options: HttpFenceOptions) {
    const names = ["lockOf", "maxToken", "memory", "isOptional"] as const;
    const { lockOf, maxToken, memory, isOptional } = knownOptions(options, names, EXAMPLE);
    if (typeof lockOf !== "function") {
      throw invalidValue("lockOf", `a value of type ${typeof lockOf}`, NEEDS_LOCK);
    }
    this.#lockOf = lockOf;
    this.#maxToken = maxToken ?? (() => BigInt(localRuntime.clock.wallUs()) + HOUR_US);
    this.#memory = memory ?? inProcess();
    this.#isOptional = isOptional ?? false;
  }

  /**
   * Guards a handler of web standards.
   *
   * @example
   * import { httpFence } from "holdfast/fence";
   *
   * const fence = httpFence({ lockOf: () => "camera:3" });
   * const guarded = fence.wrap(async (request) => new Response(null, { status: 204 }));
   */
  wrap(handle: (request: Request) => Promise<Response>): (request: Request) => Promise<Response> {
    return (request) =>
      this.#guard(
        request,
        (header) => request.headers.get(header),
        () => handle(request),
        async ({ status, headers, text }) => new Response(text, { status, headers }),
      );
  }

  /**
   * Guards a handler of `node:http`, Express or Connect. The request counts as handled when the
   * promise of the handler has settled, and not when its client goes away: the handler may still
   * write then.
   *
   * @example
   * import { httpFence } from "holdfast/fence";
   *
   * const fence = httpFence({ lockOf: (request) => `camera:${request.url}` });
   * const guarded = fence.wrapNode(async (_, response) => {
   *   response.writeHead(204).end();
   * });
   */
  wrapNode(handle: HandlesRequest): HandlesRequest {
    return (request, response) =>
      this.#guard(
        request,
        (header) => request.headers[header]?.toString() ?? null,
        () => handle(request, response),
        async ({ status, headers, text }) => void response.writeHead(status, headers).end(text),
      );
  }

  async #guard<T>(
    request: Request | IncomingMessage,
    read: (header: string) => string | null,
    handle: () => Promise<T>,
    refuse: (verdict: Verdict) => Promise<T>,
  ): Promise<T> {
    const lock = await this.#lockOf(request);
    if (lock === null) return handle();
    const fenced = fencedBy(read);
    if (fenced === "missing") {
      if (this.#isOptional) return handle();
      return refuse(verdict(MISSING, `The headers ${LOCK_HEADER} and ${TOKEN_HEADER} are needed.`));
    }
    if (fenced === "malformed") {
      return refuse(
        verdict(MALFORMED, `The headers ${LOCK_HEADER} and ${TOKEN_HEADER} are wrong.`),
      );
    }
    if (fenced.name !== lock) {
      return refuse(
        verdict(MALFORMED, `The header ${LOCK_HEADER} names another lock than needed.`),
      );
    }
    // A long name would take as much memory as many locks.
    if (nameProblem(lock) !== null) {
      return refuse(verdict(MALFORMED, `The header ${LOCK_HEADER} has no name of a lock.`));
    }
    if (fenced.token > (await this.#maxToken(lock))) {
      return refuse(verdict(MALFORMED, `The header ${TOKEN_HEADER} is above every granted token.`));
    }
    return this.#inTurn(lock, async () => {
      const highest = await this.#memory.highest(lock);
      if (fenced.token < highest) {
        const { message } = new StaleTokenError(fenced, highest);
        return refuse(verdict(STALE, message, { [TOKEN_HEADER]: `${highest}` }));
      }
      try {
        if (fenced.token > highest) await this.#memory.keep(lock, fenced.token);
      } catch (error) {
        if (error instanceof TooManyLocks) return refuse(verdict(FULL, error.message));
        throw error;
      }
      return handle();
    });
  }

  /** Runs `work` when all work under this lock that came before has ended. */
  async #inTurn<T>(lock: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(lock);
    let end: () => void = () => {};
    const ended = new Promise<void>((resume) => {
      end = resume;
    });
    this.#last.set(lock, ended);
    try {
      await before;
      return await work();
    } finally {
      end();
      if (this.#last.get(lock) === ended) this.#last.delete(lock);
    }
  }
}

/** A guard before a service, which refuses requests of holders that were replaced. */
export function httpFence(options: HttpFenceOptions): HttpFence {
  return new HttpFence(options);
}

function verdict(status: number, text: string, headers: Record<string, string> = {}): Verdict {
  return { status, text: `${text}\n`, headers: { "content-type": "text/plain", ...headers } };
}

function fencedBy(read: (header: string) => string | null): Fenced | "missing" | "malformed" {
  const [lock, token] = [read(LOCK_HEADER), read(TOKEN_HEADER)];
  if (lock === null && token === null) return "missing";
  if (lock === null || token === null || !isToken(token)) return "malformed";
  try {
    return { name: decodeURIComponent(lock), token: BigInt(token) };
  } catch {
    return "malformed";
  }
}

/** Digits, and not so many that they cost time. */
function isToken(text: string): boolean {
  return /^\d{1,19}$/.test(text);
}

class TooManyLocks extends Error {}

/** A token that is forgotten lets a late write pass: rather than forget one, refuse new locks. */
function inProcess(): HighestTokens {
  const tokens = new Map<string, bigint>();
  return {
    highest: (lock) => tokens.get(lock) ?? 0n,
    keep(lock, token) {
      if (tokens.size >= MAX_LOCKS && !tokens.has(lock)) {
        throw new TooManyLocks(
          `This process has the tokens of ${MAX_LOCKS} locks, and takes no more.`,
        );
      }
      tokens.set(lock, token);
    },
  };
}
