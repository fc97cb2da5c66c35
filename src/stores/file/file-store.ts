import type { Examination, ExamineRequest } from "../../contract/examination.js";
import type { Traits } from "../../contract/store.js";
import { ClosedError, StoreError } from "../../errors/index.js";
import { isForeign, reportForeign } from "../../events/foreign-data.js";
import type { Arbiter, Execution } from "../../families/ledger/arbiter.js";
import type { Command, Push, Reply, View } from "../../rules/ledger-command.js";
import { pause } from "../../time/pause.js";
import type { Runtime } from "../../time/runtime.js";
import { FileLedger, type Transaction } from "./ledger-file.js";
import { LockFile } from "./lock-file.js";
import { machineRuntime } from "./machine-runtime.js";
import { Quarantine, quarantineReply } from "./takeover.js";

const TRAITS: Traits = {
  scope: "machine",
  modes: ["exclusive", "shared"],
  fifo: true,
  tokenSpan: true,
  transferable: true,
  marks: true,
  minTtlMs: 50,
};

/** How many names one transaction lists or sweeps, so that none takes long. */
const PAGE = 100;
/** How often an active process looks for expired entries, and how soon again if it found some. */
const SWEEP_MS = 5_000;
const SWEEP_ON_MS = 50;
/** Short-lived programs share the work: one in this many does it. */
const SWEEPERS = 16;
/** A holder listens for revocations after this time; a waiter listens at once. */
const LISTEN_MS = 100;

/** Four processes that take turns get through 1.5 to 2.5 times as many with this pause. */
const HANDOFF_PAUSE_MS = 1;

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
  readonly runtime: Runtime = machineRuntime;
  readonly isLocal = false;
  readonly believesPushes = true;
  readonly namespace: string;
  readonly #path: string;
  #opened: LockFile | undefined;
  #isClosed = false;
  #client: string | undefined;
  #onReset: () => void = () => {};
  /** The name that was handed off to another process less than a pause ago. */
  #handoffPause: { readonly key: string; readonly ended: Promise<void> } | undefined;
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
    const pause = this.#handoffPause;
    if (!pause || !commands.some((command) => isRequestFor(command, pause.key))) {
      return this.#execute(commands);
    }
    return pause.ended.then(() => this.#execute(commands));
  }

  async *list(prefix: string): AsyncIterable<{ key: string; view: View }> {
    for (let first = prefix; ; ) {
      const { keys, views } = await this.#page(first).catch((error) => {
        throw error instanceof Quarantine ? error.toError() : error;
      });
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
    file.sockets.listen(client, onPush);
    this.runtime.timers.after(LISTEN_MS, () => {
      this.#isSocketDue = true;
      if (file.isOpen) this.#openSocket();
    });
  }

  /** Opens the socket next to the file, which has been recognised as a lock file by now. */
  #openSocket(): void {
    this.#isSocketDue = false;
    try {
      // Earlier pushes did not arrive.
      if (this.#client !== undefined && this.#opened?.sockets.open(this.#client)) this.#onReset();
    } catch {
      // A client without a socket polls the file: slower, but as safe. A call that has to wait
      // opens the socket first, and fails with the reason if that fails.
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
    // Loaded late: only `doctor` needs it.
    const { examineFile } = await import("./doctor.js");
    return examineFile(this.#file(), request);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const file = this.#opened;
    this.#opened = undefined;
    if (this.#client !== undefined) file?.sockets.unlisten(this.#client);
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
    const recheck = commands.some(({ type }) => type !== "release" && type !== "confirm");
    try {
      const outcome = this.#transact((ledger) => this.#executeAll(ledger, commands), recheck);
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
    // Before another process can see the waiter, which it would pass over without a socket.
    if (this.#client !== undefined && replies.some(({ type }) => type === "queued")) {
      this.#opened?.sockets.open(this.#client);
    }
    return replies;
  }

  #transact<T>(work: Work<T>, recheck = true): Outcome<T> | Promise<Outcome<T>> {
    return this.#file().transact((transaction) => this.#inLedger(transaction, work), recheck);
  }

  #inLedger<T>(transaction: Transaction, work: Work<T>): Outcome<T> {
    const pushes: Push[] = [];
    const emit = (push: Push): boolean => {
      if (!this.#opened?.sockets.reaches(push.client)) return false;
      pushes.push(push);
      return true;
    };
    const ledger = new FileLedger(transaction, this.namespace, emit);
    const result = work(ledger);
    ledger.save();
    return { nowUs: transaction.at.us, result, pushes };
  }

  /** Runs after the commit: pushes tell nothing that could still be rolled back. */
  #finish({ nowUs, result, pushes }: Outcome<readonly Reply[]>): Execution {
    this.#tell(pushes);
    if (this.#isSocketDue) this.#openSocket();
    if (!(nowUs / 1000 < this.#sweepMs)) this.#sweepLater(nowUs / 1000);
    return { nowUs, node: "", replies: result };
  }

  #tell(pushes: readonly Push[]): void {
    const sockets = this.#opened?.sockets;
    for (const push of pushes) {
      const isOwn = sockets?.send(push, () => this.#dropClient(push));
      if (!isOwn && push.type === "granted") this.#pauseAfterHandoff(push.key);
    }
  }

  /**
   * Requests of this process for the name wait until the next holder has probably confirmed. They
   * cannot get the lock before that, and would keep the confirm out of the file, or on a busy
   * machine that process off the processor. All of them wait, so they keep their order.
   */
  #pauseAfterHandoff(key: string): void {
    if (this.#handoffPause) return;
    const ended = pause(this.runtime.timers, HANDOFF_PAUSE_MS, true);
    this.#handoffPause = { key, ended };
    // Before any request that waits for the same promise: none may pass those that wait already.
    void ended.then(() => {
      this.#handoffPause = undefined;
    });
  }

  #refuse(error: unknown, commands: readonly Command[]): Execution | Promise<Execution> {
    if (isForeign(error) && commands.length > 1) return this.#oneByOne(commands);
    if (!(error instanceof Quarantine)) throw error;
    if (error.isShared) throw error.toError();
    const replies = commands.map((command) => quarantineReply(command, error));
    return { nowUs: this.#nowUs(), node: "", replies };
  }

  /** Gives each command its own transaction, after a name that cannot be read failed the batch. */
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

  /** Serves the next waiter at once when the process that a push was sent to is gone. */
  async #dropClient(push: Push): Promise<void> {
    if (push.type !== "granted" || this.#isClosed) return;
    const { client, key, grant } = push;
    try {
      const { pushes } = await this.#transact((ledger) => ledger.dropClient(client, key, grant));
      this.#tell(pushes);
    } catch {
      // The offer lapses anyway, only later.
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

  /** Removes expired names that no client asks for any more. */
  #sweepLater(nowMs: number): void {
    const isFirst = Number.isNaN(this.#sweepMs);
    this.#sweepMs = nowMs + SWEEP_MS;
    if (isFirst && this.runtime.random.fraction() * SWEEPERS >= 1) return;
    this.runtime.timers.after(0, async () => {
      if (this.#isClosed) return;
      try {
        const { keys, views } = await this.#page(this.#sweepKey);
        this.#sweepKey = keys.length < PAGE ? "" : `${keys.at(-1)}\0`;
        if (views.length < keys.length) this.#sweepMs = nowMs + SWEEP_ON_MS;
      } catch {
        // The next sweep tries again.
      }
    });
  }

  #nowUs(): number {
    return Math.floor(this.runtime.clock.nowMs() * 1000);
  }
}

function isRequestFor(command: Command, key: string): boolean {
  return command.type === "acquire" && command.enqueue && command.key === key;
}
