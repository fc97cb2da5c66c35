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

/** What a ledger needs during a transaction that writes. */
export interface Transaction {
  readonly database: Sqlite;
  readonly cache: DocumentCache;
  readonly at: Instant;
}

/** A transaction that starts with more documents than this starts without any. */
const MAX_DOCUMENTS = 256;

/**
 * The documents and last tokens that one connection has read or written. They equal the file until
 * another connection commits. SQLite's `data_version` shows that, by the comparison with which
 * SQLite keeps its own pages of the file: where it failed, reading again would not help.
 *
 * A transaction changes the documents before it stores them. If it does not end with `onCommit`,
 * the next one starts without any.
 */
export class DocumentCache {
  readonly #namespaces = new Map<string, Namespace>();
  #size = 0;
  /** Undefined while the documents may differ from the file. */
  #version: Value | undefined;
  #startVersion: Value | undefined;

  /** Must be called in every transaction, before its ledger reads. */
  startTransaction(database: Sqlite): void {
    const [version] = database.get("PRAGMA data_version", []) ?? [];
    if (this.#version === undefined || version !== this.#version || this.#size > MAX_DOCUMENTS) {
      this.#namespaces.clear();
      this.#size = 0;
    }
    this.#version = undefined;
    this.#startVersion = version;
  }

  onCommit(): void {
    this.#version = this.#startVersion;
  }

  namespace(name: string): Namespace | undefined {
    return this.#namespaces.get(name);
  }

  addNamespace(name: string, savedToken: number): Namespace {
    const namespace = { token: { last: savedToken }, savedToken, documents: new Map() };
    this.#namespaces.set(name, namespace);
    return namespace;
  }

  addDocument(namespace: Namespace, opened: Opened): void {
    namespace.documents.set(opened.document.key, opened);
    this.#size += 1;
  }
}

interface Namespace {
  readonly token: LastToken;
  /** The last token in the file. */
  savedToken: number;
  readonly documents: Map<string, Opened>;
}

interface Opened {
  readonly document: NameDocument;
  /** As it is in the file. */
  body: Value;
}

/** The names of one namespace during one transaction; `save` writes what has changed. */
export class FileLedger {
  readonly #database: Sqlite;
  readonly #cache: DocumentCache;
  readonly #namespace: string;
  readonly #at: Instant;
  readonly #emit: Emit;
  readonly #upkeep: Upkeep;
  readonly #opened = new Set<Opened>();

  constructor(
    { database, cache, at }: Transaction,
    namespace: string,
    emit: Emit,
    upkeep: Upkeep = new Upkeep(),
  ) {
    this.#database = database;
    this.#cache = cache;
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
    for (const opened of this.#opened) {
      const { document, body } = opened;
      const text = document.toText();
      if (text === body) continue;
      const row = [this.#namespace, toText(document.key)];
      if (text === null) this.#database.run(DELETE, row);
      else this.#database.run(SAVE, [...row, text]);
      opened.body = text;
    }
    const namespace = this.#cache.namespace(this.#namespace);
    if (!namespace || namespace.token.last === namespace.savedToken) return;
    const { last } = namespace.token;
    this.#database.run(SAVE, [this.#namespace, TOKEN_KEY, String(last)]);
    namespace.savedToken = last;
  }

  #document(key: string): NameDocument {
    const known = this.#cache.namespace(this.#namespace)?.documents.get(key);
    const opened = known ?? this.#open(key);
    opened.document.startTransaction(this.#at);
    this.#opened.add(opened);
    return opened.document;
  }

  #open(key: string): Opened {
    const values = [this.#namespace, this.#namespace, toText(key)];
    const [identity, token = null, body = null] = this.#database.get(LOAD, values) ?? [];
    if (identity !== machineIdentity()) {
      takeOver(this.#database, this.#at);
      return this.#open(key);
    }
    const namespace =
      this.#cache.namespace(this.#namespace) ??
      this.#cache.addNamespace(this.#namespace, tokenOf(token));
    const opened = { document: this.#read(key, body, namespace.token), body };
    this.#cache.addDocument(namespace, opened);
    return opened;
  }

  #read(key: string, body: Value, token: LastToken): NameDocument {
    try {
      const written = body === null ? null : text(body);
      return new NameDocument(key, written, token, this.#at);
    } catch (error) {
      throw foreignData(`table name, key ${JSON.stringify(key)}`, error);
    }
  }
}

/** SQLite ends texts at a NUL, so it is written as two other characters, which keep the order. */
function toText(key: string): string {
  if (!key.includes("\0") && !key.includes("\u0001")) return key;
  return key.replaceAll("\u0001", "\u0001\u0002").replaceAll("\0", "\u0001\u0001");
}

function fromText(text: string): string {
  return text.replaceAll("\u0001\u0001", "\0").replaceAll("\u0001\u0002", "\u0001");
}
