import { StoreError } from "../../errors.js";
import type { Command, Reply } from "../../rules/ledger-command.js";

/**
 * The reply to a command while leases of another boot may still be alive: every name counts as held
 * by an unknown holder, this boot holds nothing, and it is worth asking again.
 */
export function quarantineReply(command: Command, remainingUs: number): Reply | StoreError {
  const blockage = { holder: null, dueUs: remainingUs };
  switch (command.type) {
    case "acquire":
      return command.enqueue
        ? { type: "queued", ahead: null, ...blockage }
        : { type: "busy", ...blockage };
    case "touch":
      return { type: "touched", grants: [], waiting: 0, more: false, ...blockage };
    case "confirm":
    case "renew":
      return { type: "gone", reason: "missing", detail: "the lock file is of another boot" };
    case "release":
      return { type: "released", held: false, offerUs: 0, more: false };
    case "inspect":
    case "revoke":
      return new StoreError(
        "The lock file holds leases of another boot of this machine, or of another machine. " +
          `They are watched for another ${Math.ceil(remainingUs / 1e6)} s, until they are over.`,
        { outcome: "not_applied", store: "file" },
      );
  }
}
