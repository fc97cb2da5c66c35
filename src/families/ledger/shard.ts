import type { Command } from "../../rules/ledger-command.js";
import { ClockBounds } from "./clock-bounds.js";
import type { Recipient } from "./command-batcher.js";

/** A part of the store with its own clock: the bounds on that clock, and the commands to send. */
export class Shard {
  readonly name: string;
  readonly time: ClockBounds = new ClockBounds();
  /** The pending request for the shard's time. */
  clockSync: Promise<void> | undefined;
  #commands: Command[] = [];
  #recipients: Recipient<Command>[] = [];

  constructor(name: string) {
    this.name = name;
  }

  /** Adds a command. Returns true for the first one since the last `take`. */
  add(command: Command, recipient: Recipient<Command>): boolean {
    this.#recipients.push(recipient);
    return this.#commands.push(command) === 1;
  }

  /** Removes and returns all pending commands with their recipients. */
  take(): { commands: Command[]; recipients: Recipient<Command>[] } {
    const taken = { commands: this.#commands, recipients: this.#recipients };
    this.#commands = [];
    this.#recipients = [];
    return taken;
  }
}
