/**
 * The one connection of this process to a lock file, shared by all its stores on that path, and how
 * to run a transaction on it. No call blocks: while another process is in a transaction (or stopped
 * in one), this one tries again from a timer, and finally reports which process that was.
 */
import { type Stats, statSync } from "node:fs";
import { ClosedError, type StoreError } from "../../errors/index.js";
import { isForeign } from "../../events/foreign-data.js";
import type { Instant } from "../../rules/ledger-command.js";
import { pause } from "../../time/pause.js";
import { commit, inTransaction, openSqlite, rollBack, type Sqlite } from "./client.js";
import { busyError, isBusy, storeError, systemCode } from "./errors.js";
import {
  demandLockFile,
  dropFile,
  type FileId,
  holdFile,
  isHeldFile,
  isSameFile,
} from "./file-header.js";
import { DocumentCache, type Transaction } from "./ledger-file.js";
import { filesBeside, makeRoom, prepareFile, realPath } from "./lock-folder.js";
import { machineRuntime } from "./machine-runtime.js";
import { prepareSchema } from "./protocol.js";
import { detectRestart, Quarantine } from "./takeover.js";
import { WakeupSockets } from "./wakeup-sockets.js";

/** How long a transaction is tried before it fails and names the process in the way. */
const BUSY_MS = 500;
/** A transaction takes some 30 µs, so a few tries cost less than a turn of the event loop. */
const TRIES_AT_ONCE = 4;
const TURNS = 16;
const MAX_PAUSE_MS = 16;
/** A program that locks in a loop never waits: without this its timers and sockets would starve. */
const TURN_MS = 10;

const BUSY = Symbol("busy");

type Work<T> = (transaction: Transaction) => T;

interface Opened {
  readonly database: Sqlite;
  readonly cache: DocumentCache;
  readonly file: FileId;
  /** The `-wal` and `-shm` that SQLite made. */
  readonly beside: readonly FileId[];
}

const files = new Map<string, LockFile>();

export class LockFile {
  readonly path: string;
  readonly sockets: WakeupSockets;
  readonly #onReplaced = new Set<() => void>();
  #users = 0;
  #opened: Opened | undefined;
  /** The file that was in use before, until the file that replaced it is open. */
  #replaced: Opened | undefined;
  /** Whether the open file was compared with the path since a call asked for that. */
  #isChecked = false;
  /** Transactions that wait for another process, in order, and how many they are. */
  #queue: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  /** When the first of them began to wait. */
  #busyMs = 0;
  /** When this turn of the event loop has to end; 0 before its first transaction. */
  #turnEndMs = 0;

  private constructor(path: string) {
    this.path = path;
    this.sockets = new WakeupSockets(path);
  }

  /** The lock file of this process at a path. Its user must call `leave`. */
  static at(path: string): LockFile {
    const full = realPath(path);
    const file = files.get(full) ?? new LockFile(full);
    files.set(full, file);
    file.#users += 1;
    return file;
  }

  async leave(onReplaced: () => void): Promise<void> {
    this.#onReplaced.delete(onReplaced);
    this.#users -= 1;
    if (this.#users > 0) return;
    files.delete(this.path);
    this.#close();
    await this.sockets.close();
  }

  /** Whether the file at the path was found to be a lock file. */
  get isOpen(): boolean {
    return this.#opened !== undefined;
  }

  /** Whether the path has another file, or none, instead of the one in use. */
  get isReplaced(): boolean {
    if (!this.#opened) return false;
    const now = statIfThere(this.path);
    return !now || !isSameFile(now, this.#opened.file);
  }

  /** Calls back when another file has replaced the one in use, whose locks are lost. */
  onReplaced(listener: () => void): void {
    this.#onReplaced.add(listener);
  }

  /**
   * Runs `work` in one transaction: at once if possible, so that most answers need no promise. With
   * `recheck`, on the file that is at the path now; otherwise on the last one seen there.
   */
  transact<T>(work: Work<T>, recheck: boolean): T | Promise<T> {
    if (recheck) {
      this.#isChecked = false;
      if (this.#isTurnOver()) return nextTurn().then(() => this.transact(work, recheck));
    }
    if (this.#waiting === 0) {
      for (let tries = 0; tries < TRIES_AT_ONCE; tries += 1) {
        const outcome = this.#try(work);
        if (outcome !== BUSY) return outcome;
      }
    }
    const startMs = machineRuntime.clock.nowMs();
    const turn = this.#queue.then(() => this.#tryOften(work, startMs));
    this.#waiting += 1;
    this.#queue = turn.then(
      () => this.#leaveQueue(),
      () => this.#leaveQueue(),
    );
    return turn;
  }

  /** Whether the event loop has been blocked for too long by calls that were answered at once. */
  #isTurnOver(): boolean {
    const nowMs = machineRuntime.clock.nowMs();
    if (this.#turnEndMs === 0) {
      this.#turnEndMs = nowMs + TURN_MS;
      setImmediate(() => {
        this.#turnEndMs = 0;
      }).unref();
    }
    return nowMs > this.#turnEndMs;
  }

  #leaveQueue(): void {
    this.#waiting -= 1;
  }

  /** The error that names the process in the way; null if no transaction waits. */
  get trouble(): StoreError | null {
    if (this.#waiting === 0) return null;
    return busyError(this.path, machineRuntime.clock.nowMs() - this.#busyMs);
  }

  async #tryOften<T>(work: Work<T>, startMs: number): Promise<T> {
    this.#busyMs = startMs;
    for (let tries = 0; ; tries += 1) {
      const outcome = this.#try(work);
      if (outcome !== BUSY) return outcome;
      const waitedMs = machineRuntime.clock.nowMs() - startMs;
      if (waitedMs >= BUSY_MS) throw busyError(this.path, waitedMs);
      await pauseBefore(tries);
    }
  }

  #try<T>(work: Work<T>): T | typeof BUSY {
    if (this.#users === 0) throw new ClosedError({ store: "file" });
    let opened: Opened;
    try {
      opened = this.#current();
      opened.database.begin();
    } catch (error) {
      if (isBusy(error)) return BUSY;
      this.#close();
      throw storeError(error, this.path);
    }
    const { database, cache } = opened;
    try {
      cache.startTransaction(database);
      // The clock is read inside the transaction, in which no other process acts: times in the file
      // never run backwards.
      const result = orQuarantine(() => work({ database, cache, at: instant() }));
      commit(database);
      if (result instanceof Quarantine) throw result;
      cache.onCommit();
      return result;
    } catch (error) {
      if (error instanceof Quarantine) throw error;
      rollBack(database);
      if (!isForeign(error)) this.#close();
      throw storeError(error, this.path);
    }
  }

  /** The connection, if its file is still the one at the path; otherwise a new one. */
  #current(): Opened {
    const opened = this.#opened;
    if (opened && this.#isChecked) return opened;
    const now = statIfThere(this.path);
    this.#isChecked = true;
    if (opened && now && isSameFile(now, opened.file)) return opened;
    if (opened) {
      this.#replaced = opened;
      this.#close();
    }
    if (!now || this.#replaced) makeRoom(this.path, this.#replaced?.beside ?? []);
    this.#opened = this.#open();
    if (this.#replaced) this.#tellReplaced();
    return this.#opened;
  }

  #tellReplaced(): void {
    this.#replaced = undefined;
    this.sockets.repair();
    for (const listener of this.#onReplaced) machineRuntime.timers.soon(listener);
  }

  #open(): Opened {
    prepareFile(this.path);
    const before = statSync(this.path);
    if (!isHeldFile(before)) demandLockFile(this.path);
    const database = openSqlite(this.path);
    try {
      prepareSchema(database, this.path);
      if (process.platform !== "linux" && process.platform !== "darwin") {
        inTransaction(database, () => detectRestart(database, instant()));
      }
      const after = statSync(this.path);
      if (after.ino !== before.ino) throw new Error("it was replaced while it was opened");
    } catch (error) {
      database.close();
      throw error;
    }
    holdFile(before);
    return { database, cache: new DocumentCache(), file: before, beside: filesBeside(this.path) };
  }

  #close(): void {
    const opened = this.#opened;
    this.#opened = undefined;
    if (!opened) return;
    try {
      opened.database.close();
    } catch {
      // A broken database cannot be closed properly; the next connection starts again.
    }
    dropFile(opened.file);
  }
}

/** Undefined also if a parent is not a folder: making the file reports that. */
function statIfThere(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if (systemCode(error) !== "ENOTDIR") throw error;
    return undefined;
  }
}

/** Returns a quarantine instead of throwing it: its transaction is committed. */
function orQuarantine<T>(work: () => T): T | Quarantine {
  try {
    return work();
  } catch (error) {
    if (error instanceof Quarantine) return error;
    throw error;
  }
}

function instant(): Instant {
  const { clock } = machineRuntime;
  return { us: Math.floor(clock.nowMs() * 1000), wallUs: clock.wallUs() };
}

/** Waits a few turns of the event loop first, then longer and longer random times. */
function pauseBefore(tries: number): Promise<void> {
  if (tries < TURNS) return nextTurn();
  const { timers, random } = machineRuntime;
  const delayMs = Math.min(2 ** (tries - TURNS), MAX_PAUSE_MS) * (0.5 + random.fraction());
  return pause(timers, delayMs, true);
}

function nextTurn(): Promise<void> {
  return new Promise((resume) => setImmediate(resume));
}
