import { assert, present } from "../../errors/assert.js";
import { type HoldfastError, InternalError, StoreError } from "../../errors/index.js";
import { replyError } from "../../events/foreign-data.js";
import type { Command, Refused, ReplyTo } from "../../rules/ledger-command.js";
import type { Limited, Limits } from "../../time/limits.js";
import { TimeLimitError, within } from "../../time/timers.js";
import { refusalError } from "../acquire-errors.js";
import type { Arbiter, Execution } from "./arbiter.js";
import type { ClockBounds } from "./clock-bounds.js";
import { Shard } from "./shard.js";

/** A reply, with the times needed to interpret it. */
export interface Answer<C extends Command> {
  readonly reply: Exclude<ReplyTo<C>, Refused>;
  /** Local time just before the request was sent. Deadlines are measured from it. */
  readonly sentMs: number;
  /** The store's time in the reply. */
  readonly nowUs: number;
  /** Whether the store may get the command a second time. */
  readonly resent: boolean;
}

/** The sender of a command, which gets the answer or the failure. */
export interface Recipient<C extends Command> {
  /** If this throws, `onFailure` is called with the error. */
  onAnswer(answer: Answer<C>): void;
  /** The outcome is unknown unless the error says otherwise. Must not throw. */
  onFailure(error: unknown): void;
}

/** A larger batch would block the store and this process for too long. */
const MAX_BATCH = 1_000;
/**
 * Smaller batches let the store work on the first while this process prepares the next. Renewals
 * and repeated confirms are not urgent, so they use `MAX_BATCH` to save calls.
 */
const BRISK_BATCH = 128;

/** How long one call may take before its outcome counts as unknown. */
export const CALL_TIMEOUT_MS = 5_000;

/** A batch of commands that was sent and is not answered yet. */
class SentBatch implements Limited {
  readonly shard: Shard;
  readonly recipients: readonly Recipient<Command>[];
  readonly sentMs: number;
  readonly #onFailure: (call: SentBatch, error: unknown) => void;
  isOver = false;
  heapIndex = -1;

  constructor(
    shard: Shard,
    recipients: readonly Recipient<Command>[],
    sentMs: number,
    onFailure: (call: SentBatch, error: unknown) => void,
  ) {
    this.shard = shard;
    this.recipients = recipients;
    this.sentMs = sentMs;
    this.#onFailure = onFailure;
  }

  get dueMs(): number {
    return this.sentMs + CALL_TIMEOUT_MS;
  }

  onDue(): void {
    this.#onFailure(this, new TimeLimitError(CALL_TIMEOUT_MS));
  }

  onStop(): void {
    const context = { outcome: "unknown", retryable: false } as const;
    this.#onFailure(this, new StoreError("The store was closed before it answered.", context));
  }
}

/**
 * Sends commands to an arbiter, in one call for all commands issued in one turn of the event loop.
 * Every call settles within its timeout, whatever the underlying client does.
 */
export class CommandBatcher {
  readonly #arbiter: Arbiter;
  readonly #limits: Limits;
  readonly #shards = new Map<string, Shard>();
  /** The shard of the latest command, cached because most stores have only one. */
  #shard: Shard | undefined;
  readonly #flush = (): void => this.#sendPending();
  readonly #onFailure = (call: SentBatch, error: unknown): void => this.#fail(call, error);
  /** The shards with commands to send at the end of this turn. */
  #pending: Shard[] = [];
  /** When the first call since the store's last answer was sent; null if there is none. */
  #silentSinceMs: number | null = null;

  constructor(arbiter: Arbiter, limits: Limits) {
    this.#arbiter = arbiter;
    this.#limits = limits;
  }

  /** How long the store has left all calls unanswered. */
  get silentMs(): number {
    const { clock } = this.#arbiter.runtime;
    return this.#silentSinceMs === null ? 0 : clock.nowMs() - this.#silentSinceMs;
  }

  time(key: string): ClockBounds {
    return this.#shardOf(key).time;
  }

  /**
   * Asks for the store's time if it is unknown; commands need it to say until when they are valid.
   * Returns undefined if it is known.
   */
  syncClock(key: string): Promise<void> | undefined {
    const shard = this.#shardOf(key);
    if (shard.time.isKnown) return undefined;
    shard.clockSync ??= this.#syncClock(shard).finally(() => {
      shard.clockSync = undefined;
    });
    return shard.clockSync;
  }

  /** Sends the command at the end of this turn. A local arbiter answers synchronously. */
  post<C extends Command>(command: C, recipient: Recipient<C>): void {
    if (this.#arbiter.isLocal) {
      const answer = this.#answerAtOnce(command);
      if ("reply" in answer) return tell(recipient, answer);
      return recipient.onFailure(answer);
    }
    const shard = this.#shardOf(command.key);
    if (!shard.add(command, recipient as Recipient<Command>)) return;
    if (this.#pending.push(shard) === 1) this.#arbiter.runtime.timers.soon(this.#flush);
  }

  /** Like `post`, but returns the answer. */
  send<C extends Command>(command: C): Answer<C> | Promise<Answer<C>> {
    if (this.#arbiter.isLocal) return orThrow(this.#answerAtOnce(command));
    return new Promise((resolve, reject) => {
      this.post(command, { onAnswer: resolve, onFailure: reject });
    });
  }

  /** Sends before this returns, ahead of all commands that wait for the end of the turn. */
  postNow<C extends Command>(command: C, recipient: Recipient<C>): void {
    if (this.#arbiter.isLocal) return this.post(command, recipient);
    this.#call(this.#shardOf(command.key), [command], [recipient as Recipient<Command>]);
  }

  #answerAtOnce<C extends Command>(command: C): Answer<C> | HoldfastError {
    try {
      return this.#answerHere(command, this.#arbiter.runtime.clock.nowMs());
    } catch (error) {
      return error instanceof InternalError ? error : unknown(error);
    }
  }

  #answerHere<C extends Command>(command: C, sentMs: number): Answer<C> | StoreError {
    const execution = this.#arbiter.execute("", [command]);
    assert("nowUs" in execution, "a local arbiter answers within the call");
    const { nowUs, node, replies } = execution;
    this.#shardOf(command.key).time.learn(node, sentMs, nowUs, sentMs);
    const [reply] = replies;
    if (reply === undefined || !("type" in reply)) return reply ?? noReply();
    if (reply.type === "refused") return refusalError(reply);
    return { reply: reply as Answer<C>["reply"], sentMs, nowUs, resent: false };
  }

  async #syncClock(shard: Shard): Promise<void> {
    const { clock } = this.#arbiter.runtime;
    const sentMs = clock.nowMs();
    try {
      const clockSync = Promise.resolve(this.#arbiter.execute(shard.name, []));
      const { nowUs, node } = await within(
        this.#arbiter.runtime.timers,
        CALL_TIMEOUT_MS,
        clockSync,
      );
      shard.time.learn(node, sentMs, nowUs, clock.nowMs());
    } catch (error) {
      throw unknown(error);
    }
  }

  #sendPending(): void {
    const shards = this.#pending;
    this.#pending = [];
    for (const shard of shards) this.#sendInBatches(shard);
  }

  #sendInBatches(shard: Shard): void {
    const { commands, recipients } = shard.take();
    if (commands.length <= BRISK_BATCH) return this.#call(shard, commands, recipients);
    for (let start = 0; start < commands.length; ) {
      const end = start + (isPatient(commands[start]) ? MAX_BATCH : BRISK_BATCH);
      this.#call(shard, commands.slice(start, end), recipients.slice(start, end));
      start = end;
    }
  }

  #call(
    shard: Shard,
    commands: readonly Command[],
    recipients: readonly Recipient<Command>[],
  ): void {
    const call = new SentBatch(
      shard,
      recipients,
      this.#arbiter.runtime.clock.nowMs(),
      this.#onFailure,
    );
    this.#silentSinceMs ??= call.sentMs;
    try {
      const execution = this.#arbiter.execute(shard.name, commands);
      if (!(execution instanceof Promise)) return this.#deliver(call, execution);
      this.#limits.add(call);
      execution.then(
        (late) => this.#deliver(call, late),
        (error) => this.#fail(call, error),
      );
    } catch (error) {
      this.#fail(call, error);
    }
  }

  #deliver(call: SentBatch, execution: Execution): void {
    this.#silentSinceMs = null;
    if (!this.#end(call)) return;
    const { shard, recipients } = call;
    const { nowUs, node, replies, sentMs = call.sentMs, resent = false } = execution;
    shard.time.learn(node, sentMs, nowUs, this.#arbiter.runtime.clock.nowMs());
    for (let index = 0; index < recipients.length; index += 1) {
      const recipient = present(recipients[index], "each command of a call has a recipient");
      const reply = replies[index];
      if (reply === undefined || reply instanceof Error) recipient.onFailure(reply ?? noReply());
      else if (reply.type === "refused") recipient.onFailure(refusalError(reply));
      else tell(recipient, { reply, sentMs, nowUs, resent });
    }
  }

  /** Fails all commands of a call that threw or timed out. */
  #fail(call: SentBatch, cause: unknown): void {
    if (!this.#end(call)) return;
    const error = unknown(cause);
    // A server that refuses a call is not silent.
    if (error.outcome === "not_applied") this.#silentSinceMs = null;
    for (const recipient of call.recipients) recipient.onFailure(error);
  }

  #end(call: SentBatch): boolean {
    if (call.isOver) return false;
    call.isOver = true;
    this.#limits.remove(call);
    return true;
  }

  #shardOf(key: string): Shard {
    const name = this.#arbiter.shardOf(key);
    if (this.#shard?.name === name) return this.#shard;
    const shard = this.#shards.get(name) ?? new Shard(name);
    this.#shards.set(name, shard);
    this.#shard = shard;
    return shard;
  }
}

/** If the recipient cannot process the answer, only that recipient gets a failure. */
function tell<C extends Command>(recipient: Recipient<C>, answer: Answer<C>): void {
  try {
    recipient.onAnswer(answer);
  } catch (cause) {
    recipient.onFailure(replyError("the reply to a command", cause));
  }
}

function orThrow<C extends Command>(answer: Answer<C> | HoldfastError): Answer<C> {
  if ("reply" in answer) return answer;
  throw answer;
}

/** Repeated confirms can wait. The first confirm of an offer is urgent and uses `postNow`. */
function isPatient(command: Command | undefined): boolean {
  return command?.type === "renew" || command?.type === "confirm";
}

function unknown(cause: unknown): StoreError {
  if (cause instanceof StoreError) return cause;
  const message = cause instanceof Error ? cause.message : String(cause);
  return new StoreError(`The store failed: ${message}`, { outcome: "unknown", cause });
}

function noReply(): StoreError {
  return new StoreError("The store left a command without a reply.", { outcome: "unknown" });
}
