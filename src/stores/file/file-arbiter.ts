import { ClosedError, StoreError } from "../../errors.js";
import type { Examination, ExamineRequest } from "../../examination.js";
import { isForeign, reportForeign } from "../../foreign-data.js";
import type { Command, Instant, Push, Reply, View } from "../../rules/ledger-command.js";
import type { Traits } from "../../store.js";
import type { Port } from "../../time/port.js";
import type { Arbiter, Execution } from "../arbiter/arbiter.js";
import { FileLedger } from "./file-ledger.js";
import { LockFile } from "./lock-file.js";
import { LonePath } from "./lone-path.js";
import { machinePort } from "./machine-port.js";
import { quarantineReply } from "./quarantine-reply.js";
import type { Sqlite } from "./sqlite.js";
import { StepBack } from "./step-back.js";
import { Quarantine } from "./takeover.js";
import { TokenReserve } from "./token-reserve.js";

const TRAITS: Traits = {
  scope: "machine",
  modes: ["exclusive", "shared"],
  fifo: true,
  tokenSpan: true,
  transferable: true,
  marks: true,
  minTtlMs: 50,
};

/** Names are listed and swept so many at a time: no transaction takes long. */
const PAGE = 100;
/**
 * How often a process in use looks for what others left behind, and how soon when it found some.
 */
const SWEEP_MS = 5_000;
const SWEEP_ON_MS = 50;
/** Programs that live for a moment share the work: one of so many does it. */
const SWEEPERS = 16;
/** A holder listens for a revocation after this time; a waiter listens at once. */
const LISTEN_MS = 100;

type Work<T> = (ledger: FileLedger) => T;

interface Outcome<T> {
  readonly nowUs: number;
  readonly result: T;
  readonly pushes: readonly Push[];
}

/** Runs the ledger's commands on a lock file, a transaction for each batch. */
export class FileArbiter implements Arbiter {
  readonly name = "file";
  readonly traits: Traits = TRAITS;
  readonly port: Port = machinePort;
  readonly isLocal = false;
  readonly believesPushes = true;
  readonly namespace: string;
  readonly #path: string;
  #opened: LockFile | undefined;
  #isClosed = false;
  #client: string | undefined;
  #onReset: () => void = () => {};
  readonly #stepBack = new StepBack();
  readonly #tokens = new TokenReserve();
  readonly #lonePath = new LonePath(this.#tokens);
  #isSocketDue = false;
  #sweepMs = Number.NaN;
  #sweepKey = "";
  readonly #onReplaced = (): void => this.#onReset();

  constructor(path: string, namespace: string) {
    this.#path = path;
    this.namespace = namespace;
  }

  shardOf(): string {
    return "";
  }

  execute(_shard: string, commands: readonly Command[]): Execution | Promise<Execution> {
    if (commands.length === 0) return { nowUs: this.#nowUs(), node: "", replies: [] };
    const isFree = this.#stepBack.before(commands);
    return isFree ? isFree.then(() => this.#execute(commands)) : this.#execute(commands);
  }

  async *list(prefix: string): AsyncIterable<{ key: string; view: View }> {
    for (let first = prefix; ; ) {
      const { keys, views } = await this.#page(first);
      for (const { key, view } of views) {
        if (!key.startsWith(prefix)) return;
        yield { key, view };
      }
      if (keys.length < PAGE) return;
      first = `${keys.at(-1)}\0`;
    }
  }

  listen(client: string, onPush: (push: Push) => void, onReset: () => void): void {
    this.#client = client;
    this.#onReset = onReset;
    const file = this.#file();
    file.post.listen(client, onPush);
    this.port.timers.after(LISTEN_MS, () => {
      this.#isSocketDue = true;
      if (file.isOpen) this.#openSocket();
    });
  }

  /** Opens the socket beside the file, which is known as a lock file by now. */
  #openSocket(): void {
    this.#isSocketDue = false;
    try {
      // Earlier pushes did not arrive.
      if (this.#client !== undefined && this.#opened?.post.open(this.#client)) this.#onReset();
    } catch {
      // A client without a socket asks the file again by itself: slower, but as safe. A call that
      // has to wait opens the socket first, and fails with the reason if it cannot.
    }
  }

  async explain(error: StoreError): Promise<StoreError> {
    const trouble = this.#opened?.trouble;
    if (!trouble || error.cause !== undefined) return error;
    const { outcome, retryable, lockName, store } = error;
    const context = { outcome, retryable, lockName, store, cause: trouble };
    return new StoreError(`${error.message} ${trouble.message}`, context);
  }

  async examine(request: ExamineRequest): Promise<Examination> {
    // Only a doctor needs this.
    const { examineFile } = await import("./examination.js");
    return examineFile(this.#file(), request);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const file = this.#opened;
    this.#opened = undefined;
    if (this.#client !== undefined) file?.post.unlisten(this.#client);
    await file?.leave(this.#onReplaced);
  }

  #file(): LockFile {
    if (this.#isClosed) throw new ClosedError({ store: this.name });
    if (!this.#opened) {
      this.#opened = LockFile.at(this.#path);
      this.#opened.onReplaced(this.#onReplaced);
    }
    return this.#opened;
  }

  #execute(commands: readonly Command[]): Execution | Promise<Execution> {
    const [first] = commands;
    const only = commands.length === 1 ? first : undefined;
    const anew = commands.some(({ type }) => type !== "release" && type !== "confirm");
    try {
      const outcome = this.#file().transact<Outcome<readonly Reply[]>>(
        (database, at) =>
          this.#inLedger(database, at, (ledger) => this.#executeAll(ledger, commands)),
        anew,
        (database, at) => {
          const reply = only ? this.#lonePath.execute(only, at, database) : null;
          return reply && { nowUs: at.us, result: [reply], pushes: [] };
        },
      );
      if (!(outcome instanceof Promise)) return this.#finish(outcome);
      return outcome.then(
        (late) => this.#finish(late),
        (error) => this.#refuse(error, commands),
      );
    } catch (error) {
      return this.#refuse(error, commands);
    }
  }

  #executeAll(ledger: FileLedger, commands: readonly Command[]): readonly Reply[] {
    const replies = commands.map((command) => ledger.execute(command));
    const key = commands[0]?.key ?? "";
    // Where more is done at a time, others are waiting.
    const hold = replies.length === 1 && replies[0]?.type === "granted" && ledger.soleHold(key);
    if (hold) this.#lonePath.add(key, hold);
    // Before another process can see the waiter: a waiter without a socket would be passed over.
    if (this.#client !== undefined && replies.some(({ type }) => type === "queued")) {
      this.#opened?.post.open(this.#client);
    }
    return replies;
  }

  #transact<T>(work: Work<T>): Outcome<T> | Promise<Outcome<T>> {
    return this.#file().transact((database, at) => this.#inLedger(database, at, work), true);
  }

  #inLedger<T>(database: Sqlite, at: Instant, work: Work<T>): Outcome<T> {
    const pushes: Push[] = [];
    const emit = (push: Push): boolean => {
      if (!this.#opened?.post.reaches(push.client)) return false;
      pushes.push(push);
      return true;
    };
    const ledger = new FileLedger(database, this.namespace, at, emit, this.#tokens);
    const result = work(ledger);
    ledger.save();
    return { nowUs: at.us, result, pushes };
  }

  /** Only what is committed is told. */
  #finish({ nowUs, result, pushes }: Outcome<readonly Reply[]>): Execution {
    this.#tell(pushes);
    if (this.#isSocketDue) this.#openSocket();
    if (!(nowUs / 1000 < this.#sweepMs)) this.#sweepLater(nowUs / 1000);
    return { nowUs, node: "", replies: result };
  }

  #tell(pushes: readonly Push[]): void {
    const post = this.#opened?.post;
    for (const push of pushes) {
      const isOwn = post?.send(push, () => this.#bury(push));
      if (!isOwn && push.type === "granted") this.#stepBack.onHandedOver(push.key);
    }
  }

  #refuse(error: unknown, commands: readonly Command[]): Execution | Promise<Execution> {
    if (isForeign(error) && commands.length > 1) return this.#oneByOne(commands);
    if (!(error instanceof Quarantine)) throw error;
    const { remainingUs, refusal } = error;
    if (refusal) throw refusal;
    const replies = commands.map((command) => quarantineReply(command, remainingUs));
    return { nowUs: this.#nowUs(), node: "", replies };
  }

  /** A name that cannot be read failed its batch, and nothing of it was done: each for itself. */
  async #oneByOne(commands: readonly Command[]): Promise<Execution> {
    const replies: (Reply | StoreError)[] = [];
    for (const command of commands) {
      try {
        const { replies: alone } = await this.#execute([command]);
        replies.push(...alone);
      } catch (error) {
        if (!isForeign(error)) throw error;
        replies.push(error);
      }
    }
    return { nowUs: this.#nowUs(), node: "", replies };
  }

  /**
   * The push did not arrive, because its process is gone: the next in line need not wait for it.
   */
  async #bury(push: Push): Promise<void> {
    if (push.type !== "granted" || this.#isClosed) return;
    const { client, key, grant } = push;
    try {
      const { pushes } = await this.#transact((ledger) => ledger.bury(client, key, grant));
      this.#tell(pushes);
    } catch {
      // It was a short cut: otherwise the offer lapses by itself.
    }
  }

  async #page(first: string): Promise<{ keys: string[]; views: { key: string; view: View }[] }> {
    const { result: keys } = await this.#transact((ledger) => ledger.keysFrom(first, PAGE));
    try {
      return { keys, views: await this.#views(keys) };
    } catch (error) {
      if (!isForeign(error)) throw error;
    }
    const views: { key: string; view: View }[] = [];
    for (const key of keys) {
      try {
        views.push(...(await this.#views([key])));
      } catch (error) {
        if (!isForeign(error)) throw error;
        reportForeign(this.name, `key ${JSON.stringify(key)}`, error);
      }
    }
    return { keys, views };
  }

  async #views(keys: readonly string[]): Promise<{ key: string; view: View }[]> {
    const { result, pushes } = await this.#transact((ledger) =>
      keys.flatMap((key) => {
        const view = ledger.view(key);
        return view ? [{ key, view }] : [];
      }),
    );
    this.#tell(pushes);
    return result;
  }

  /** Names out of use would keep their rows: now and then, one client looks for them. */
  #sweepLater(nowMs: number): void {
    const isFirst = Number.isNaN(this.#sweepMs);
    this.#sweepMs = nowMs + SWEEP_MS;
    if (isFirst && this.port.random.fraction() * SWEEPERS >= 1) return;
    this.port.timers.after(0, async () => {
      if (this.#isClosed) return;
      try {
        const { keys, views } = await this.#page(this.#sweepKey);
        this.#sweepKey = keys.length < PAGE ? "" : `${keys.at(-1)}\0`;
        if (views.length < keys.length) this.#sweepMs = nowMs + SWEEP_ON_MS;
      } catch {
        // There will be another time.
      }
    });
  }

  #nowUs(): number {
    return Math.floor(this.port.clock.nowMs() * 1000);
  }
}
