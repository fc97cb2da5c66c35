import { foreignData, text } from "../../events/foreign-data.js";
import { apply } from "../../rules/ledger.js";
import type {
  Command,
  Emit,
  Instant,
  PushedGrant,
  Reply,
  View,
} from "../../rules/ledger-command.js";
import { Upkeep } from "../../rules/upkeep.js";
import type { Sqlite, Value } from "./client.js";
import { machineIdentity } from "./machine-runtime.js";
import { type LastToken, NameDocument } from "./name-document.js";
import { TOKEN_KEY, tokenOf } from "./protocol.js";
import { takeOver } from "./takeover.js";

const LOAD = `SELECT machine.identity, token.body, name.body FROM machine
  LEFT JOIN name AS token ON token.namespace = ? AND token.key = '${TOKEN_KEY}'
  LEFT JOIN name ON name.namespace = ? AND name.key = ?`;
const SAVE = "INSERT OR REPLACE INTO name VALUES (?, ?, ?)";
const DELETE = "DELETE FROM name WHERE namespace = ? AND key = ?";
const FIRST_KEYS = `SELECT key FROM name WHERE namespace = ? AND key > '${TOKEN_KEY}' AND key >= ?
  ORDER BY key LIMIT ?`;

/** The names of one namespace during one transaction; `save` writes what has changed. */
export class FileLedger {
  readonly #database: Sqlite;
  readonly #namespace: string;
  readonly #at: Instant;
  readonly #emit: Emit;
  readonly #upkeep: Upkeep;
  readonly #token: LastToken = { last: 0 };
  #savedToken: number | undefined;
  readonly #documents = new Map<string, Opened>();

  constructor(
    database: Sqlite,
    namespace: string,
    at: Instant,
    emit: Emit,
    upkeep: Upkeep = new Upkeep(),
  ) {
    this.#database = database;
    this.#namespace = toText(namespace);
    this.#at = at;
    this.#emit = emit;
    this.#upkeep = upkeep;
  }

  execute(command: Command): Reply {
    return apply(this.#document(command.key), command, this.#at, this.#emit, this.#upkeep);
  }

  /** Drops a client whose process is gone, and an offer to it; the next waiter is served. */
  dropClient(id: string, key: string, { owner, token }: PushedGrant): void {
    const document = this.#document(key);
    const holder = document.holder(owner);
    if (holder && !holder.confirmed && holder.token === token) document.dropHolder(holder);
    const client = document.client(id);
    if (client) document.dropClient(client);
    this.execute({ type: "inspect", key });
  }

  /** Names in use from this one on, in the order of their bytes. */
  keysFrom(first: string, limit: number): string[] {
    const rows = this.#database.all(FIRST_KEYS, [this.#namespace, toText(first), limit]);
    return rows.flatMap(([key]) => (typeof key === "string" ? [fromText(key)] : []));
  }

  /** Looks at a name, which removes what has expired there; null if nothing is left. */
  view(key: string): View | null {
    const view = this.execute({ type: "inspect", key }) as View;
    return view.holders.length + view.waiters.length > 0 || view.mark ? view : null;
  }

  save(): void {
    for (const { document, body } of this.#documents.values()) {
      const text = document.toText();
      if (text === body) continue;
      const row = [this.#namespace, toText(document.key)];
      if (text === null) this.#database.run(DELETE, row);
      else this.#database.run(SAVE, [...row, text]);
    }
    const { last } = this.#token;
    if (last === (this.#savedToken ?? 0)) return;
    this.#database.run(SAVE, [this.#namespace, TOKEN_KEY, String(last)]);
  }

  #document(key: string): NameDocument {
    let opened = this.#documents.get(key);
    if (!opened) {
      opened = this.#open(key);
      this.#documents.set(key, opened);
    }
    return opened.document;
  }

  #open(key: string): Opened {
    const values = [this.#namespace, this.#namespace, toText(key)];
    const [identity, token = null, body = null] = this.#database.get(LOAD, values) ?? [];
    if (identity !== machineIdentity()) {
      takeOver(this.#database, this.#at);
      return this.#open(key);
    }
    if (this.#savedToken === undefined) {
      this.#savedToken = tokenOf(token);
      this.#token.last = this.#savedToken;
    }
    return { document: this.#read(key, body), body };
  }

  #read(key: string, body: Value): NameDocument {
    try {
      const written = body === null ? null : text(body);
      return new NameDocument(key, written, this.#token, this.#at);
    } catch (error) {
      throw foreignData(`table name, key ${JSON.stringify(key)}`, error);
    }
  }
}

interface Opened {
  readonly document: NameDocument;
  /** As it is in the file. */
  readonly body: Value;
}

/** SQLite ends texts at a NUL, so it is written as two other characters, which keep the order. */
function toText(key: string): string {
  if (!key.includes("\0") && !key.includes("\u0001")) return key;
  return key.replaceAll("\u0001", "\u0001\u0002").replaceAll("\0", "\u0001\u0001");
}

function fromText(text: string): string {
  return text.replaceAll("\u0001\u0001", "\0").replaceAll("\u0001\u0002", "\u0001");
}
