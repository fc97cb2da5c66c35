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
import { FileState, type SpaceTime } from "./file-state.js";
import type { SoleHold } from "./lone-path.js";
import { machineIdentity } from "./machine-identity.js";
import { fromText, toText } from "./name-record.js";
import type { Sqlite } from "./sqlite.js";
import { takeOver } from "./takeover.js";
import { TokenReserve } from "./token-reserve.js";

/**
 * A last token that is no number is forgotten: the clock and the clients tell the next. One that is
 * too high for a number is read as the highest, and none follows it.
 */
const TOKEN = `CASE WHEN typeof(s.token) = 'integer' AND s.token >= 0
  THEN min(s.token, ${Number.MAX_SAFE_INTEGER}) ELSE 0 END`;
const LOAD = `SELECT m.identity, s.id, ${TOKEN}, n.body FROM machine m JOIN space s
  LEFT JOIN name n ON n.space = s.id AND n.key = ? WHERE s.name = ?`;
const ADD_SPACE = "INSERT INTO space (name, token) VALUES (?, 0)";
const SET_TOKEN = "UPDATE space SET token = ? WHERE id = ?";
const FIRST_KEYS = `SELECT key FROM name WHERE space = (SELECT id FROM space WHERE name = ?)
  AND key >= ? ORDER BY key LIMIT ?`;

/**
 * All names of one namespace in the file, during one transaction; `save` writes what has changed.
 */
export class FileLedger {
  readonly #database: Sqlite;
  readonly #namespace: string;
  readonly #at: Instant;
  readonly #emit: Emit;
  readonly #tokens: TokenReserve;
  readonly #upkeep: Upkeep;
  readonly #states = new Map<string, FileState>();
  #time: SpaceTime | undefined;

  constructor(
    database: Sqlite,
    namespace: string,
    at: Instant,
    emit: Emit,
    tokens: TokenReserve = new TokenReserve(),
    upkeep: Upkeep = new Upkeep(),
  ) {
    this.#database = database;
    this.#namespace = toText(namespace);
    this.#at = at;
    this.#emit = emit;
    this.#tokens = tokens;
    this.#upkeep = upkeep;
  }

  execute(command: Command): Reply {
    return apply(this.#state(command.key), command, this.#at, this.#emit, this.#upkeep);
  }

  /** The process of a client is gone for certain: its place and its offers go to the next. */
  bury(client: string, key: string, { owner, token }: PushedGrant): void {
    const state = this.#state(key);
    const holder = state.holder(owner);
    if (holder && !holder.confirmed && holder.token === token) state.dropHolder(holder);
    const line = state.client(client);
    if (line) state.dropClient(line);
    this.execute({ type: "inspect", key });
  }

  /** Names in use from this one on, in the order of their bytes. */
  keysFrom(first: string, limit: number): string[] {
    const rows = this.#database.all(FIRST_KEYS, [this.#namespace, toText(first), limit]);
    return rows.flatMap(([key]) => (typeof key === "string" ? [fromText(key)] : []));
  }

  /** Looks at a name, which lets go of what is over there; null where nothing is left. */
  view(key: string): View | null {
    const view = this.execute({ type: "inspect", key }) as View;
    return view.holders.length + view.waiters.length > 0 || view.mark ? view : null;
  }

  save(): void {
    for (const state of this.#states.values()) state.save();
    if (!this.#time || !this.#tokens.advance(this.#time.lastToken, this.#at.wallUs)) return;
    this.#database.run(SET_TOKEN, [this.#tokens.kept, this.#tokens.spaceId]);
  }

  /** The row of a name that has one holder and nothing else, as `save` writes it. */
  soleHold(key: string): SoleHold | null {
    return this.#states.get(key)?.soleHold() ?? null;
  }

  #state(key: string): FileState {
    let state = this.#states.get(key);
    if (!state) {
      state = this.#load(key);
      this.#states.set(key, state);
    }
    return state;
  }

  #load(key: string): FileState {
    const row = this.#database.get(LOAD, [toText(key), this.#namespace]);
    if (!row) {
      this.#database.run(ADD_SPACE, [this.#namespace]);
      return this.#load(key);
    }
    const [identity, space, token, body] = row as [string, number, number, string | null];
    if (identity !== machineIdentity()) {
      takeOver(this.#database, this.#at);
      return this.#load(key);
    }
    if (!this.#time) {
      this.#tokens.onRead(this.#database, space, token);
      const wallOffsetUs = this.#at.wallUs - this.#at.us;
      this.#time = { lastToken: this.#tokens.last, wallOffsetUs };
    }
    return new FileState(this.#database, key, [space, toText(key)], body, this.#time);
  }
}
