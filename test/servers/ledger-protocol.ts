// The protocol of the ledger server: one JSON object a line.
import type { Socket } from "node:net";
import type { Execution } from "../../src/families/ledger/arbiter.js";
import type { Command, Push, View } from "../../src/rules/ledger-command.js";

/** A fault that happens once, on the connection of the client with this label. */
export interface LedgerFault {
  /**
   * loseReply: the command takes effect, then the connection breaks. keepBack: the connection
   * breaks first, and the command takes effect when it is delivered. dropPush: a push is lost.
   */
  readonly kind: "loseReply" | "keepBack" | "dropPush";
  readonly label: string;
  readonly command?: Command["type"];
}

export type LedgerRequest =
  /** Names the client of this connection: a label for faults, and the receiver of pushes. */
  | { readonly type: "hello"; readonly label: string; readonly client: string | null }
  | { readonly type: "execute"; readonly namespace: string; readonly commands: readonly Command[] }
  | { readonly type: "list"; readonly namespace: string; readonly prefix: string }
  /** Forgets all locks of a namespace. */
  | { readonly type: "wipe"; readonly namespace: string }
  /** How many names a namespace remembers. */
  | { readonly type: "size"; readonly namespace: string }
  /** Answered when the fault has happened. */
  | { readonly type: "fault"; readonly fault: LedgerFault }
  /** Executes the command that was kept back. */
  | { readonly type: "deliver"; readonly label: string };

export interface LedgerReplies {
  readonly hello: { readonly pid: number };
  readonly execute: Execution;
  readonly list: readonly { readonly key: string; readonly view: View }[];
  readonly wipe: null;
  readonly size: number;
  readonly fault: null;
  readonly deliver: null;
}

/** A message from a client; the reply has the same id. */
export type ClientLine = LedgerRequest & { readonly id: number };

export type ServerLine = { readonly id: number; readonly value: unknown } | { readonly push: Push };

/** Calls back for each line that a socket receives. */
export function readLines(socket: Socket, onLine: (line: string) => void): void {
  let rest = "";
  socket.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) onLine(line);
  });
}
