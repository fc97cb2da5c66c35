/**
 * A store in another thread, which renews leases while the event loop of the caller is blocked.
 *
 * Why it is safe: the thread runs the very store and lease renewer that would run here, so grants
 * are renewed by the same rules, once the caller has taken them and up to its `maxHoldMs`.
 * Deadlines are measured in that thread from the sending of each request, on a clock that both
 * threads share (a runtime without one is refused). Each deadline is written to shared memory of
 * that one grant, rounded down, and the caller compares it with the clock at each look. So the
 * caller never relies on a grant for longer than the thread may, whether messages are late, lost or
 * wait behind a blocked event loop, and after a stop of both threads. If a grant ends early, an end
 * that no later deadline overwrites takes the place of its deadline: when the store says so, and
 * before this process frees the grant at its exit or after a failure of the store. A thread that
 * ends or hangs moves no deadline, so its leases end by the clock. Stores in one thread share its
 * event loop and its clock, but no grant and no port. An error that no call awaits ends the store
 * in whose work it was thrown, or all of them.
 */

import type { Examination, ExamineRequest } from "../contract/examination.js";
import type {
  AcquireResult,
  Busy,
  Claim,
  Grant,
  LockView,
  Meta,
  Renewal,
  RenewalTerms,
  Renewer,
  Store,
  Traits,
  Wait,
} from "../contract/store.js";
import { type StoreError, UnsupportedError } from "../errors/index.js";
import { events } from "../events/publish.js";
import { lateGrantError, MAX_LATE_GRANTS } from "../families/acquire-errors.js";
import type { Space } from "../rules/name.js";
import { machineClock } from "../time/clock.js";
import { localRuntime, type Runtime } from "../time/runtime.js";
import { sharedClock } from "../time/shared-clock.js";
import { copyOfError, errorOf } from "./error-copy.js";
import { type ExitSignal, forgetAtExit, releaseAtExit } from "./exit-release.js";
import type { GrantCopy, Opened, RenewalCopy } from "./messages.js";
import { linkToThread } from "./store-thread.js";
import type { LinkListener, ThreadConnection, UnaskedMessage } from "./thread-connection.js";
import { ThreadGrant, threadGrant } from "./thread-grant.js";

/** The timers of two threads do not differ by more. */
const EARLY_MS = 1_000;
/** How long the release of a grant that no caller wants may take. */
const CLEANUP_MS = 5_000;
/** How long the store may take for a look, and the way to its thread and back. */
const LOOK_MS = 5_000;
const WAY_MS = 250;

/** Opens the store of a URL in the thread that all such stores of this process share. */
export async function openThreadStore(url: string): Promise<Store> {
  const { clock, link, exitSignal } = await linkToThread();
  try {
    const opened = await link.call("open", url).answer;
    // Leases in a file are kept by the clock of this machine, which stands still while it sleeps.
    const isLocal = opened.traits.scope === "machine";
    const port = { ...localRuntime, clock: isLocal ? machineClock : sharedClock(clock) };
    await checkClock(link, port);
    return new ThreadStore(opened, port, link, exitSignal);
  } catch (error) {
    await link.close();
    throw error;
  }
}

/** The threads must read one clock: otherwise a deadline of one means nothing to the other. */
async function checkClock(link: ThreadConnection, { clock }: Runtime): Promise<void> {
  const beforeMs = clock.exactMs();
  const thereMs = await link.call("now").answer;
  if (beforeMs <= thereMs && thereMs <= clock.exactMs()) return;
  throw new UnsupportedError(
    "The threads of this runtime have no clock in common, so thread: true cannot work here.",
  );
}

export class ThreadStore implements Store, LinkListener {
  readonly name: string;
  readonly namespace?: string;
  readonly traits: Traits;
  readonly runtime: Runtime;
  readonly renewer: Renewer;
  readonly exitSignal: ExitSignal;
  readonly explain?: (error: StoreError) => Promise<StoreError>;
  readonly examine?: (request: ExamineRequest) => Promise<Examination>;
  readonly #link: ThreadConnection;
  /** The grants that the other thread has, by their numbers. */
  readonly #grants = new Map<number, ThreadGrant>();
  /** The waits of acquisitions under way, by the numbers of their calls. */
  readonly #waits = new Map<number, Wait>();
  #isExiting = false;

  constructor(opened: Opened, runtime: Runtime, link: ThreadConnection, exitSignal: ExitSignal) {
    this.name = opened.name;
    if (opened.namespace !== undefined) this.namespace = opened.namespace;
    this.traits = opened.traits;
    this.runtime = runtime;
    this.#link = link;
    this.renewer = {
      keep: (grant, terms) => this.#keep(grant, terms),
      catchUp: (grant) => {
        const own = threadGrant(grant);
        if (own.isOver) this.#catchUp(own);
      },
    };
    if (opened.explains) this.explain = (error) => this.#explain(error);
    if (opened.examines) this.examine = (request) => this.#examine(request);
    this.exitSignal = exitSignal;
    releaseAtExit(this);
    link.listen(this);
  }

  beginExit(): boolean {
    this.#isExiting = true;
    // Before the thread can release them: another process may hold the locks from then on.
    for (const grant of this.#grants.values()) grant.expire();
    const hasWork = this.#grants.size > 0 || this.#link.hasCalls;
    if (!hasWork || this.#link.hasEnded) return false;
    this.#link.tellNow({ type: "exit" });
    return true;
  }

  async acquire(claim: Claim, wait: Wait | null): Promise<AcquireResult> {
    let late = 0;
    for (let asked = claim; ; asked = { ...claim, owner: this.runtime.random.id() }) {
      const result = await this.#ask(asked, wait);
      if (result.type === "busy") return result;
      const grant = this.#adopt(asked, result);
      // This thread may have been blocked while the answer waited in its port.
      if (this.runtime.clock.exactMs() + (claim.minUsefulMs ?? 0) < grant.deadlineMs) return grant;
      this.#giveBack(grant);
      // A grant that the store has ended was not late.
      if (wait ? wait.ended : grant.isOver) return { type: "busy", holder: null, mark: null };
      if (!grant.isOver) late += 1;
      if (late === MAX_LATE_GRANTS || !wait) throw lateGrantError(claim, this.name);
    }
  }

  async renew(
    asked: readonly { readonly grant: Grant; readonly ttlMs: number }[],
  ): Promise<readonly Renewal[]> {
    if (asked.length === 0) return [];
    const sent = asked.map(({ grant, ttlMs }) => ({ grant: threadGrant(grant).number, ttlMs }));
    const endMs = Math.max(...asked.map(({ grant }) => grant.deadlineMs));
    const restMs = Math.max(0, endMs - this.runtime.clock.nowMs());
    const renewals = await this.#link.callWithin(restMs, "renew", sent);
    return renewals.map(renewalOf);
  }

  async release(
    grant: Grant,
    withinMs: number,
    keep?: { readonly ttlMs: number; readonly meta: Meta },
  ): Promise<boolean> {
    const { number } = threadGrant(grant);
    const thereMs = Math.max(withinMs / 2, withinMs - WAY_MS);
    const released = this.#link.callWithin(withinMs, "release", number, thereMs, keep);
    return released.finally(() => this.#grants.delete(number));
  }

  async resume(claim: Claim, token: bigint, locator: string | null): Promise<Grant | null> {
    const limitMs = claim.storeTimeoutMs + WAY_MS;
    const copy = await this.#link.callWithin(limitMs, "resume", claim, token, locator);
    if (!copy) return null;
    const grant = this.#adopt(claim, copy);
    if (this.runtime.clock.exactMs() < grant.deadlineMs) return grant;
    this.#giveBack(grant);
    return null;
  }

  detach(grant: Grant): void {
    this.#link.tell({ type: "detach", grant: threadGrant(grant).number });
  }

  inspect(space: Space, name: string): Promise<LockView> {
    return this.#link.callWithin(LOOK_MS + WAY_MS, "inspect", space, name);
  }

  async *list(space: Space, prefix: string): AsyncGenerator<LockView, void> {
    const limitMs = LOOK_MS + WAY_MS;
    const list = await this.#link.callWithin(limitMs, "list", space, prefix);
    try {
      for (;;) {
        const view = await this.#link.callWithin(limitMs, "next", list);
        if (!view) return;
        yield view;
      }
    } finally {
      this.#link.tell({ type: "endList", list });
    }
  }

  revoke(space: Space, name: string, token: bigint, reason: string): Promise<boolean> {
    return this.#link.callWithin(LOOK_MS + WAY_MS, "revoke", space, name, token, reason);
  }

  close(): Promise<void> {
    forgetAtExit(this);
    return this.#link.close();
  }

  onUnasked(message: UnaskedMessage): void {
    switch (message.type) {
      case "report": {
        const { holder, ahead, grantsInMs } = message;
        this.#waits.get(message.id)?.report(holder, ahead, grantsInMs);
        break;
      }
      case "gone": {
        const grant = this.#grants.get(message.grant);
        const { reason, detail } = message;
        this.#grants.delete(message.grant);
        grant?.end({ reason, detail });
        break;
      }
      case "renewal": {
        const grant = this.#grants.get(message.grant);
        const { error, ...report } = message.report;
        const why = error ? { error: errorOf(error) } : {};
        grant?.listener?.onRenewal({ ...report, ...why });
        break;
      }
      case "published": {
        const channel = events[message.channel];
        const why = message.error ? { error: errorOf(message.error) } : {};
        if (channel.hasSubscribers) channel.publish({ ...message.event, ...why });
      }
    }
  }

  isUrgent(message: UnaskedMessage): boolean {
    return message.type === "gone" && this.#grants.has(message.grant);
  }

  /** The call has failed, so no caller knows of the grant. */
  onLateAnswer(value: unknown): void {
    const { type, grant } = (value ?? {}) as Partial<GrantCopy>;
    if (type !== "granted" || grant === undefined) return;
    this.#link.call("release", grant, CLEANUP_MS, undefined).answer.catch(() => {});
  }

  /** The grant has ended: tells why, by the thread's message if that is in the port. */
  #catchUp(grant: ThreadGrant): void {
    this.#link.catchUp();
    if (this.#isExiting) grant.end({ reason: "session_ended", detail: "the process exits" });
  }

  #keep(grant: Grant, terms: RenewalTerms): void {
    const own = threadGrant(grant);
    if (own.take(terms)) return;
    // At once: the caller may block its event loop before this turn ends.
    this.#link.tellNow({ type: "keep", grant: own.number, terms });
  }

  async #ask(claim: Claim, wait: Wait | null): Promise<GrantCopy | Busy> {
    const { id, answer } = this.#link.call("acquire", claim, wait ? wait.untilMs : null);
    if (!wait) return answer;
    this.#waits.set(id, wait);
    wait.onEnd(() => this.#link.tell({ type: "cancel", id }));
    const result = await answer.finally(() => this.#waits.delete(id));
    // The timer of the thread may fire a moment before the one of the caller, for which a wait that
    // has not ended was not ended by its time.
    const restMs = wait.untilMs - this.runtime.clock.nowMs();
    const isEarly = result.type === "busy" && !result.mark && !wait.ended && restMs < EARLY_MS;
    if (isEarly) await new Promise<void>((resume) => wait.onEnd(resume));
    return result;
  }

  #adopt(asked: Claim, copy: GrantCopy): ThreadGrant {
    const grant = new ThreadGrant(asked, copy);
    this.#grants.set(grant.number, grant);
    return grant;
  }

  #giveBack(grant: ThreadGrant): void {
    this.release(grant, CLEANUP_MS).catch(() => {});
  }

  async #explain(error: StoreError): Promise<StoreError> {
    // The thread hangs, not the store.
    if (this.#link.isLate) return error;
    const explained = await this.#link.call("explain", copyOfError(error)).answer;
    return explained ? (errorOf(explained) as StoreError) : error;
  }

  async #examine({ ttlMs, signal }: ExamineRequest): Promise<Examination> {
    const { id, answer } = this.#link.call("examine", ttlMs);
    const cancel = (): void => this.#link.tell({ type: "cancel", id });
    signal.addEventListener("abort", cancel, { once: true });
    return answer.finally(() => signal.removeEventListener("abort", cancel));
  }
}

function renewalOf(copy: RenewalCopy): Renewal {
  return copy.type === "unknown" ? { type: "unknown", error: errorOf(copy.error) } : copy;
}
