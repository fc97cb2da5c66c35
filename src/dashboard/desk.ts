/** Answers the requests of the page: its files, the live stream, the findings, a revocation. */

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { HoldfastError } from "../errors/index.js";
import { channels, type LostEvent, type RenewEvent } from "../events/events.js";
import { SPACES, type Space } from "../rules/name.js";
import { localRuntime, type Runtime } from "../time/runtime.js";
import { answer, Gate, jsonAnswer, refusal, streamAnswer } from "./gate.js";
import type { LockName } from "./history.js";
import { LiveStream } from "./live-stream.js";
import type { FindingsAnswer, LeaseRow, LiveMessage } from "./message.js";
import type { CheckedOptions, ShownLocks } from "./options.js";
import { FILES } from "./page.generated.js";
import { AuditError, BadRequestError, parseOrder, revokeAudited } from "./revocation.js";
import { Sampler } from "./sampler.js";
import { NO_TOTALS } from "./snapshot.js";
import type { Timeline } from "./timeline.js";

const MAX_STREAMS = 100;
const MAX_BODY_BYTES = 8_192;
const MAX_LEASES = 1_000;

const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
};

export class Desk {
  readonly #locks: ShownLocks;
  readonly #options: CheckedOptions;
  readonly #runtime: Runtime;
  readonly #gate: Gate;
  readonly #sampler: Sampler;
  readonly #examinations: Examinations;
  readonly #streams = new Set<LiveStream>();
  readonly #stopCounting: () => void;
  #isClosed = false;

  constructor(locks: ShownLocks, options: CheckedOptions, runtime: Runtime = localRuntime) {
    this.#locks = locks;
    this.#options = options;
    this.#runtime = runtime;
    this.#gate = new Gate(options.hosts);
    this.#sampler = new Sampler(locks, runtime, options.everyMs);
    const wallMs = (): number => this.#sampler.wallMs();
    this.#examinations = new Examinations(locks, wallMs);
    this.#stopCounting = countOwnEvents(this.#sampler.timeline, wallMs);
  }

  close(): void {
    this.#isClosed = true;
    this.#stopCounting();
    for (const stream of this.#streams) stream.close();
  }

  /** Rejects only if `authorize` does. */
  async handle(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const { path } = this.#options;
    const refused = this.#gate.checkPage(request);
    if (refused) return refused;
    if (path !== "" && pathname === path) {
      const response = answer(308, "text/plain", null);
      response.headers.set("location", `${path}/`);
      return response;
    }
    if (!pathname.startsWith(`${path}/`)) return refusal(404, "There is no such page.");
    const rest = pathname.slice(path.length + 1);
    if (!rest.startsWith("api/")) return fileAnswer(rest || "index.html", request.method);
    return this.#data(request, `${request.method} ${rest.slice(4)}`, searchParams);
  }

  async #data(request: Request, route: string, query: URLSearchParams): Promise<Response> {
    const refused = this.#gate.checkData(request);
    if (refused) return refused;
    const actor: unknown = await this.#options.authorize(request);
    if (typeof actor !== "string" || actor === "") return refusal(401, "You are not authorized.");
    if (this.#isClosed) return refusal(503, "The dashboard is closed.");
    try {
      if (route === "GET live") return await this.#live(actor, query);
      if (route === "GET findings") return jsonAnswer(await this.#examinations.get());
      if (route === "POST revoke") return await this.#revoke(request, actor);
      return refusal(404, "There is no such page.");
    } catch (error) {
      return failure(error);
    }
  }

  async #live(actor: string, query: URLSearchParams): Promise<Response> {
    const mayRevoke = await this.#mayRevoke(actor);
    if (this.#streams.size >= MAX_STREAMS) return refusal(503, "Too many pages are open.");
    const view = query.get("view");
    const lock = view === "lock" ? lockOf(query) : null;
    const search = {
      prefix: query.get("prefix") ?? "",
      space: spaceOf(query.get("space")),
      offset: Math.max(0, Math.trunc(Number(query.get("offset")) || 0)),
    };
    const sampler = this.#sampler;
    let told = 0;
    const message = (): LiveMessage => {
      const points = sampler.timeline.since(told);
      told = points.at(-1)?.at ?? told;
      return {
        title: this.#options.title,
        actor,
        mayRevoke,
        at: sampler.at,
        store: sampler.state,
        totals: sampler.snapshot?.totals ?? NO_TOTALS,
        points,
        ...(lock && { lock: sampler.detailOf(lock) }),
        ...(view === "leases" && { leases: this.#leases() }),
        ...(view === "locks" && sampler.snapshot && { page: sampler.snapshot.page(search) }),
      };
    };
    const onEnd = (ended: LiveStream): boolean => this.#streams.delete(ended);
    const stream = new LiveStream(sampler, this.#runtime.timers, lock, message, onEnd);
    this.#streams.add(stream);
    return streamAnswer(stream.body);
  }

  async #revoke(request: Request, actor: string): Promise<Response> {
    const { onAudit } = this.#options;
    if (!onAudit || !(await this.#mayRevoke(actor))) {
      return refusal(403, "Leases cannot be revoked here.");
    }
    if (!/^application\/json\b/.test(request.headers.get("content-type") ?? "")) {
      return refusal(415, "The body must be JSON.");
    }
    const order = parseOrder(await textOf(request));
    const now = (): Date => new Date(this.#sampler.wallMs());
    const result = await revokeAudited(this.#locks, order, actor, onAudit, now);
    if (result.outcome === "revoked") {
      const at = this.#sampler.wallMs();
      this.#sampler.history.noteRevocation(order, order.token, actor, at);
      this.#sampler.timeline.addRevocation(at);
    }
    return jsonAnswer(result);
  }

  async #mayRevoke(actor: string): Promise<boolean> {
    const { allowRevoke } = this.#options;
    return typeof allowRevoke === "function" ? await allowRevoke(actor) : allowRevoke === true;
  }

  #leases(): LeaseRow[] {
    return this.#locks
      .held()
      .slice(0, MAX_LEASES)
      .map((lease) => {
        const { name, token, state } = lease;
        return { name, token: `${token}`, state, remainingMs: lease.remainingMs() };
      });
  }
}

function fileAnswer(name: string, method: string): Response {
  const text = FILES.get(name);
  if (text === undefined) return refusal(404, "There is no such page.");
  if (method !== "GET" && method !== "HEAD") return refusal(405, "This page can only be read.");
  const type = TYPES[name.slice(name.lastIndexOf(".") + 1)] ?? "text/plain; charset=utf-8";
  return answer(200, type, method === "HEAD" ? null : text);
}

function failure(error: unknown): Response {
  if (error instanceof BadRequestError) return refusal(400, error.message);
  if (error instanceof AuditError) return refusal(500, error.message);
  if (error instanceof HoldfastError) return refusal(503, error.message);
  return refusal(500, `Internal error: ${error instanceof Error ? error.message : error}`);
}

function lockOf(query: URLSearchParams): LockName {
  const space = spaceOf(query.get("space"));
  const name = query.get("name");
  if (!space || !name) throw new BadRequestError("The name or the space of the lock is missing.");
  return { space, name };
}

function spaceOf(text: string | null): Space | null {
  return SPACES.find((space) => space === text) ?? null;
}

/** The body, unless it is too long. */
async function textOf(request: Request): Promise<string> {
  let bytes = 0;
  const parts: Uint8Array[] = [];
  for await (const part of request.body ?? []) {
    bytes += part.length;
    if (bytes > MAX_BODY_BYTES) throw new BadRequestError("The body is too long.");
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}

/**
 * Counts the losses and the failed renewals of this process, from now on, whether there is a viewer
 * or not. Returns how to end it.
 */
function countOwnEvents(timeline: Timeline, wallMs: () => number): () => void {
  const onLost = (event: unknown): void => timeline.addLoss(wallMs(), (event as LostEvent).reason);
  const onRenew = (event: unknown): void => {
    if ((event as RenewEvent).outcome === "failed") timeline.addFailedRenewal(wallMs());
  };
  subscribe(channels.lost, onLost);
  subscribe(channels.renew, onRenew);
  return () => {
    unsubscribe(channels.lost, onLost);
    unsubscribe(channels.renew, onRenew);
  };
}

/** An examination is shown again for so long: many viewers cost the store as much as one. */
const FRESH_MS = 10_000;

/** The findings of the doctor, asked for once for all viewers. */
class Examinations {
  readonly #locks: ShownLocks;
  readonly #wallMs: () => number;
  #last: Promise<FindingsAnswer> | null = null;
  #at = 0;

  constructor(locks: ShownLocks, wallMs: () => number) {
    this.#locks = locks;
    this.#wallMs = wallMs;
  }

  get(): Promise<FindingsAnswer> {
    const at = this.#wallMs();
    if (this.#last && Math.abs(at - this.#at) < FRESH_MS) return this.#last;
    const asked = this.#locks.examine().then((examination) => ({ at, examination }));
    this.#last = asked;
    this.#at = at;
    // A failure is not kept.
    asked.catch(() => {
      if (this.#last === asked) this.#last = null;
    });
    return asked;
  }
}
