import type { Command } from "../../rules/ledger-command.js";
import { ClockBounds } from "./clock-bounds.js";
import type { Recipient } from "./command-batcher.js";

/** A part of the store with one clock: its time, and the commands that wait to be sent to it. */
export class Shard {
  readonly name: string;
  readonly time: ClockBounds = new ClockBounds();
  /** The question for its time, while it is under way. */
  clockSync: Promise<void> | undefined;
  #commands: Command[] = [];
  #recipients: Recipient<Command>[] = [];

  constructor(name: string) {
    this.name = name;
  }

  /** True for the first command since the last `take`. */
  add(command: Command, recipient: Recipient<Command>): boolean {
    this.#recipients.push(recipient);
    return this.#commands.push(command) === 1;
  }

  /** All commands that wait, with their recipients. */
  take(): { commands: Command[]; recipients: Recipient<Command>[] } {
    const taken = { commands: this.#commands, recipients: this.#recipients };
    this.#commands = [];
    this.#recipients = [];
    return taken;
  }
}
