import { Unreadable, whole } from "../../events/foreign-data.js";
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
    this.#commands = commands;
    if (Array.isArray(raw)) {
      const [time, letters] = raw;
      const isTerse = commands.length > 1 && raw.length === (tellsRun ? 3 : 2);
      this.nowUs = whole(time);
      this.run = tellsRun ? String(raw.at(-1)) : "";
      this.#replies = isTerse && typeof letters === "string" ? letters : raw.slice(1);
    } else {
      this.nowUs = whole(raw);
      this.run = tellsRun ? String(raw) : "";
      this.#replies = loneReply(commands);
    }
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

/** The reply that the time alone stands for; none if there is not exactly one command. */
function loneReply(commands: readonly Command[]): string {
  const [command] = commands;
  if (!command || commands.length > 1) return "";
  return command.type === "release" ? "R" : "G";
}
