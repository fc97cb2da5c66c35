import type { Execution } from "../../families/ledger/arbiter.js";
import { CALL_TIMEOUT_MS } from "../../families/ledger/command-batcher.js";
import type { Command } from "../../rules/ledger-command.js";
import type { Runtime } from "../../time/runtime.js";
import type { Statement } from "./client.js";
import { damagedRow } from "./codec.js";
import { isCollision, isDamage, isNotSetUp, postgresError } from "./errors.js";
import type { PrimaryConnection } from "./primary-connection.js";
import type { Job, Session } from "./session.js";

/** A larger batch would keep the rows of its names locked for too long. */
const MAX_COMMANDS = 1_000;
/** More collisions are unlikely: transactions lock rows in one order, and for a short time. */
const MAX_COLLISIONS = 5;

export interface BatchRules {
  /** The statement that runs the commands. */
  statement(commands: readonly Command[], isPinned: boolean): Statement;
  read(commands: readonly Command[], text: string | null): Execution;
  /** Makes what is missing in the database, or throws. */
  setUp(session: Session): Promise<void>;
}

/** The commands of one call. */
interface Part {
  readonly commands: readonly Command[];
  /** From this time on the call has failed, and its commands must not be sent. */
  readonly dueMs: number;
  resolve(execution: Execution): void;
  reject(error: unknown): void;
}

/** All calls that came while the connection was busy. They become one statement. */
class Batch implements Job {
  readonly #batches: Batches;
  #parts: Part[] = [];
  #commands: Command[] = [];
  #session: Session | null = null;
  #isSent = false;
  /** When it was sent last: a batch that was sent before was rolled back. */
  #sentMs = 0;
  #collisions = 0;
  #isSetUp = false;

  constructor(batches: Batches) {
    this.#batches = batches;
  }

  /** False where it is full. */
  add(part: Part): boolean {
    const { length } = this.#commands;
    if (length > 0 && length + part.commands.length > MAX_COMMANDS) return false;
    this.#parts.push(part);
    this.#commands.push(...part.commands);
    return true;
  }

  start(): void {
    const { connection } = this.#batches;
    this.#isSent = false;
    if (connection.session) return this.#runOn(connection.session);
    connection.ready().then(
      (session) => this.#runOn(session),
      (error) => this.#fail(error),
    );
  }

  statement(): Statement | null {
    const { rules, runtime } = this.#batches;
    this.#batches.leave(this);
    const nowMs = runtime.clock.nowMs();
    if (this.#parts.some(({ dueMs }) => dueMs <= nowMs)) this.#drop(nowMs);
    if (this.#parts.length === 0) return null;
    this.#isSent = true;
    this.#sentMs = nowMs;
    return rules.statement(this.#commands, this.#session?.isPinned ?? false);
  }

  onAnswer(text: string | null): void {
    try {
      const { replies, ...execution } = this.#batches.rules.read(this.#commands, text);
      let from = 0;
      for (const { commands, resolve } of this.#parts) {
        const to = from + commands.length;
        resolve({ ...execution, sentMs: this.#sentMs, replies: replies.slice(from, to) });
        from = to;
      }
    } catch (error) {
      this.#fail(error);
    }
  }

  onFailure(error: unknown): void {
    const session = this.#session;
    // The connection ended before the commands were sent: the next one takes them.
    if (!this.#isSent) return this.start();
    if (isCollision(error) && this.#collisions < MAX_COLLISIONS) {
      this.#collisions += 1;
      return this.start();
    }
    if (isNotSetUp(error) && session && !this.#isSetUp) {
      this.#isSetUp = true;
      this.#batches.rules.setUp(session).then(
        () => this.start(),
        (cause) => this.#fail(cause),
      );
      return;
    }
    const [command, another] = this.#commands;
    const isOwnRow = command !== undefined && another === undefined && isDamage(error);
    this.#fail(isOwnRow ? damagedRow(command.key, error) : error);
  }

  #runOn(session: Session): void {
    this.#session = session;
    session.run(this);
  }

  /** The calls of these parts have failed by their time-out. */
  #drop(nowMs: number): void {
    const [over, parts] = [[] as Part[], [] as Part[]];
    for (const part of this.#parts) (part.dueMs <= nowMs ? over : parts).push(part);
    this.#parts = parts;
    this.#commands = parts.flatMap(({ commands }) => commands);
    for (const { reject } of over) reject(new Error("The command was not sent in time."));
  }

  #fail(cause: unknown): void {
    this.#batches.leave(this);
    const error = postgresError(cause, "running");
    for (const { reject } of this.#parts) reject(error);
  }
}

/**
 * Sends commands as soon as the connection is free. A commit costs the server more than a command,
 * so commands that come meanwhile travel together.
 */
export class Batches {
  readonly connection: PrimaryConnection;
  readonly runtime: Runtime;
  readonly rules: BatchRules;
  /** The batch that is not sent yet. */
  #waiting: Batch | null = null;

  constructor(connection: PrimaryConnection, runtime: Runtime, rules: BatchRules) {
    this.connection = connection;
    this.runtime = runtime;
    this.rules = rules;
  }

  run(commands: readonly Command[]): Promise<Execution> {
    return new Promise((resolve, reject) => {
      const dueMs = this.runtime.clock.nowMs() + CALL_TIMEOUT_MS;
      const part = { commands, dueMs, resolve, reject };
      if (this.#waiting?.add(part)) return;
      const batch = new Batch(this);
      batch.add(part);
      this.#waiting = batch;
      batch.start();
    });
  }

  /** No more commands may join the batch. */
  leave(batch: Batch): void {
    if (this.#waiting === batch) this.#waiting = null;
  }
}
