import { appendFileSync } from "node:fs";
import { hostname, userInfo } from "node:os";
import { connect } from "../../api/connect.js";
import type { Holdfast } from "../../api/holdfast.js";
import type { AuditLine, ServeOptions, ShownLocks } from "../../dashboard/index.js";
import { isFinal, StoreError } from "../../errors/index.js";
import type { Lease } from "../../lease/lease.js";
import { type Arguments, UsageError } from "../arguments.js";
import type { Command } from "../command.js";
import { ExitCode } from "../exit-code.js";
import { storeUrlOf } from "../open-cli-store.js";
import { print, tell, writeLine } from "../output.js";
import { toJson } from "../plain-text.js";
import { withoutSecrets } from "../secrets.js";
import { STORE_OPTIONS } from "../settings.js";
import { Signals } from "../signals.js";

const STDERR = 2;
const MAX_PORT = 65_535;
/** The URL is printed after this time at the latest. */
const FIRST_TRY_MS = 500;

export const dashboard: Command = {
  usage: ["[OPTIONS]"],
  about:
    "Serves a page that shows the locks of the store, live, to browsers of this machine, and " +
    "prints its URL. The part of the URL after # is a secret of this start: all who have it see " +
    "the locks. While the store is away, the page says so. It runs until it is interrupted. For " +
    "a host without a browser, pass the port on by ssh: ssh -L 8080:127.0.0.1:8080 HOST.",
  options: {
    port: { value: "N", help: "the port at 127.0.0.1; default: a free one" },
    "allow-revoke": { help: "let the page revoke leases; without it the page only reads" },
    audit: { value: "FILE", help: "append revocations to FILE as JSON lines; default: to stderr" },
    ...STORE_OPTIONS,
  },
  examples: [
    ["holdfast dashboard --store redis://localhost", "look"],
    ["holdfast dashboard --allow-revoke --audit audit.jsonl", "look, and revoke"],
  ],

  async run(args) {
    args.none();
    const port = args.count("port", 1, MAX_PORT) ?? 0;
    if (args.has("audit") && !args.has("allow-revoke")) {
      throw new UsageError("--audit needs --allow-revoke: the audit is of revocations.");
    }
    using signals = new Signals();
    const url = storeUrlOf(args);
    await using locks = new OpeningLocks(() => connect(url));
    // A wrong URL is told here; a store that is away is told by the page.
    const isOpen = await locks.tried(FIRST_TRY_MS);
    const board = await serve(locks, {
      port,
      title: titleOf(url),
      actor: actorName(),
      allowRevoke: args.has("allow-revoke"),
      onAudit: (line) => writeAudit(args, line),
    });
    await print([board.url]);
    tell("holdfast: open this URL in a browser of this machine; Ctrl-C ends the dashboard.");
    if (!isOpen) tell("holdfast: the store has not answered yet; the page says when it does.");
    await new Promise((resolve) => {
      if (signals.interrupted.aborted) resolve(null);
      signals.interrupted.addEventListener("abort", resolve);
    });
    await board.close();
    return ExitCode.ok;
  },
};

async function serve(locks: ShownLocks, options: ServeOptions) {
  const { serveDashboard } = await import("../../dashboard/index.js");
  try {
    return await serveDashboard(locks, options);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    throw new UsageError(`Port ${options.port} is taken: give another, or none for a free one.`);
  }
}

/** A line that cannot be written stops the revocation. */
function writeAudit(args: Arguments, line: AuditLine): void {
  const file = args.text("audit");
  if (file === undefined) writeLine(STDERR, toJson(line));
  else appendFileSync(file, `${toJson(line)}\n`);
}

function actorName(): string {
  return `${userName()} on ${hostname()}`;
}

/** The system throws for a user without a password entry, as containers have. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.()}`;
  }
}

/** The scheme and the host: no password, and no parameters, which may hold one. */
function titleOf(url: string): string {
  return withoutSecrets(url)
    .replace(/\/\/[^/@]*@/, "//")
    .replace(/[?#].*$/, "");
}

/**
 * The locks of a store that may be away when they are first asked for. Each question opens the
 * store, until that succeeds once; questions at the same time share one attempt.
 */
export class OpeningLocks implements ShownLocks, AsyncDisposable {
  readonly #open: () => Promise<Holdfast>;
  #opened: Holdfast | null = null;
  #attempt: Promise<Holdfast> | null = null;
  #isClosed = false;

  constructor(open: () => Promise<Holdfast>) {
    this.#open = open;
  }

  /**
   * The first attempt, for at most `limitMs`: whether the store is open. Throws where no further
   * attempt would help.
   */
  async tried(limitMs: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, limitMs);
    });
    try {
      await Promise.race([this.#locks(), late]);
    } catch (error) {
      if (!(error instanceof StoreError) || isFinal(error)) throw error;
    } finally {
      clearTimeout(timer);
    }
    return this.#opened !== null;
  }

  async *list(...given: Parameters<Holdfast["list"]>): ReturnType<Holdfast["list"]> {
    yield* (await this.#locks()).list(...given);
  }

  async inspect(...given: Parameters<Holdfast["inspect"]>): ReturnType<Holdfast["inspect"]> {
    return (await this.#locks()).inspect(...given);
  }

  async revoke(...given: Parameters<Holdfast["revoke"]>): ReturnType<Holdfast["revoke"]> {
    return (await this.#locks()).revoke(...given);
  }

  async examine(...given: Parameters<Holdfast["examine"]>): ReturnType<Holdfast["examine"]> {
    return (await this.#locks()).examine(...given);
  }

  held(): Lease[] {
    return this.#opened?.held() ?? [];
  }

  /** A store that opens later is closed then. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#opened?.close();
  }

  async #locks(): Promise<Holdfast> {
    if (this.#opened) return this.#opened;
    this.#attempt ??= this.#try();
    return this.#attempt;
  }

  async #try(): Promise<Holdfast> {
    try {
      const locks = await this.#open();
      this.#opened = locks;
      if (this.#isClosed) await locks.close();
      return locks;
    } finally {
      this.#attempt = null;
    }
  }
}
