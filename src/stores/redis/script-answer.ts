import { Unreadable, whole } from "../../foreign-data.js";
import type { Command, Reply } from "../../rules/ledger-command.js";
import { decode } from "./codec.js";

/**
 * The answer of the script to a batch: the time, a reply for each command, and the run of the
 * server if the flags ask for it. A lone acquire that is granted, and a lone release of a holder,
 * are answered by the time alone. Replies of one letter each come as one text.
 */
export class ScriptAnswer {
  /** The store's time at which the batch ran. */
  readonly nowUs: number;
  /** The run of the server; empty where it is not told. */
  readonly run: string;
  readonly #commands: readonly Command[];
  readonly #replies: ArrayLike<unknown>;
  /** The token after the last grant of this batch. */
  #nextToken: number;

  /** Throws if the time cannot be read. */
  constructor(commands: readonly Command[], raw: unknown, tellsRun: boolean) {
    const parts: readonly unknown[] = Array.isArray(raw) ? raw : [raw, ...loneReply(commands)];
    const isTerse = commands.length > 1 && parts.length === (tellsRun ? 3 : 2);
    const [time, letters] = parts;
    this.nowUs = whole(time);
    this.run = tellsRun ? String(parts.at(-1)) : "";
    this.#commands = commands;
    this.#replies = isTerse && typeof letters === "string" ? letters : parts.slice(1);
    this.#nextToken = this.nowUs;
  }

  /** The reply to the command at this place, as the script sends it. */
  text(at: number): unknown {
    return this.#replies[at];
  }

  /** The same, decoded. The replies must be read in order. Throws if it cannot be read. */
  reply(at: number): Reply {
    const command = this.#commands[at];
    if (!command) throw new Unreadable("a command for each reply");
    const text = this.text(at);
    const reply = decode(command, text, this.nowUs, this.#nextToken);
    if (reply.type === "granted" && String(text).startsWith("G")) {
      this.#nextToken = reply.token + reply.span;
    }
    return reply;
  }
}

function loneReply([command, ...more]: readonly Command[]): readonly string[] {
  if (!command || more.length > 0) return [];
  return [command.type === "release" ? "R" : "G"];
}
