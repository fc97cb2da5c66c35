import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { afterEach, expect, it } from "vitest";
import { isQuick } from "../../../test/fixtures/depth.js";
import { withExtremeNumber } from "../../../test/fixtures/extreme-numbers.js";
import { randomOf } from "../../../test/fixtures/seed.js";
import type { Command, Emit, Instant, Push, Reply } from "../../rules/ledger-command.js";
import { Upkeep } from "../../rules/upkeep.js";
import { MemoryLedger } from "../memory/memory-ledger.js";
import { commit, openSqlite, rollBack, type Sqlite } from "./client.js";
import { DocumentCache, FileLedger } from "./ledger-file.js";
import { prepareSchema } from "./protocol.js";

const NAMES = "SELECT * FROM name WHERE key <> ''";
const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** What the work of a transaction returns to have it rolled back. */
const ROLLED_BACK = Symbol("rolled back");

function inTransaction<T>(
  { database, cache }: Connection,
  at: Instant,
  emit: Emit,
  upkeep: Upkeep | undefined,
  work: (ledger: FileLedger) => T,
): T {
  database.begin();
  cache.startTransaction(database);
  const result = work(new FileLedger({ database, cache, at }, "space", emit, upkeep));
  if (result === ROLLED_BACK) {
    rollBack(database);
    return result;
  }
  commit(database);
  cache.onCommit();
  return result;
}

interface Connection {
  readonly database: Sqlite;
  readonly cache: DocumentCache;
}

/** Two connections to one file, as two processes have them. */
function openLedgers(): { path: string; connections: readonly [Connection, Connection] } {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-file-"));
  folders.push(folder);
  const path = join(folder, "locks.db");
  const open = (): Connection => {
    const database = openSqlite(path);
    prepareSchema(database, path);
    return { database, cache: new DocumentCache() };
  };
  return { path, connections: [open(), open()] };
}

const STEPS = isQuick ? 1_000 : 5_000;
/** The rare cases of a shape happen about five times as often, whatever the seed is. */
const MIN_CASES = STEPS / 500;
const MS = 1_000;
const KEYS = ["l:a", "l:ü", "l:ü\0"];

/** The shape of the commands of one run; many owners make many holders and waiters. */
interface Shape {
  readonly owners: number;
  readonly clients: number;
  readonly exclusiveOf10: number;
  readonly limit: number;
  /** Numbers that no client should send, and a clock that goes back. */
  readonly isWild?: boolean;
  /** How much piled-up work a batch does. */
  readonly slice?: number;
  /** Many commands in one tick of the wall clock. */
  readonly isQuick?: boolean;
}

function draw(
  next: (below: number) => number,
  shape: Shape,
  nowUs: number,
  tokens: readonly number[],
): Command {
  const key = KEYS[next(KEYS.length)] as string;
  const owner = `owner-${next(shape.owners)}`;
  const client = `client-${next(shape.clients)}`;
  const ttlUs = (50 + next(400)) * MS;
  const seenToken = next(40) === 0 ? (tokens.at(-1) ?? 0) + next(100) : 0;
  const notAfterUs = nowUs + (next(20) === 0 ? -1 : 1_000 * MS);
  const kind = next(100);
  if (kind < 45) {
    const isExclusive = next(10) < shape.exclusiveOf10;
    const limit = next(10) === 0 ? Number.MAX_SAFE_INTEGER : shape.limit - next(2);
    const request = isExclusive
      ? { mode: "exclusive" as const, weight: 1, limit: Number.MAX_SAFE_INTEGER }
      : { mode: "shared" as const, weight: 1 + next(2), limit };
    const times = { ttlUs, offerUs: 40 * MS, heartbeatUs: (20 + next(40)) * MS, notAfterUs };
    const rest = { span: 1 + next(3), meta: `{"n":${next(9)}}`, enqueue: next(5) > 0, seenToken };
    return { type: "acquire", key, owner, client, ...request, ...times, ...rest };
  }
  if (kind < 55) return { type: "confirm", key, owner };
  if (kind < 58) return { type: "renew", key, owner, ttlUs, notAfterUs, seenToken };
  if (kind < 62)
    return { type: "renew", key, owner, resumedBy: client, ttlUs, notAfterUs, seenToken };
  if (kind < 85) {
    const keep = next(60) === 0 ? { ttlUs: 60 * MS, meta: '{"by":"once"}' } : null;
    const tombstoneUs = next(5) === 0 ? nowUs + next(100) * MS : 0;
    return { type: "release", key, owner, tombstoneUs, keep };
  }
  if (kind < 94) return { type: "heartbeat", key, client };
  if (kind < 97) return { type: "inspect", key };
  return { type: "revoke", key, token: tokens[next(tokens.length)] ?? 1, reason: "because" };
}

const SHAPES: readonly Shape[] = [
  { owners: 1, clients: 1, exclusiveOf10: 7, limit: 2 },
  { owners: 2, clients: 2, exclusiveOf10: 9, limit: 2 },
  { owners: 2, clients: 2, exclusiveOf10: 9, limit: 2, isQuick: true },
  { owners: 6, clients: 3, exclusiveOf10: 10, limit: 1 },
  { owners: 40, clients: 5, exclusiveOf10: 10, limit: 1 },
  { owners: 40, clients: 5, exclusiveOf10: 1, limit: 30 },
  { owners: 20, clients: 20, exclusiveOf10: 4, limit: 4 },
  { owners: 40, clients: 20, exclusiveOf10: 8, limit: 4, isWild: true },
  { owners: 40, clients: 5, exclusiveOf10: 1, limit: 30, slice: 1 },
  { owners: 20, clients: 20, exclusiveOf10: 4, limit: 9, slice: 1 },
];

it.each(SHAPES.map((shape, index) => [index, shape] as const))(
  "answers like the ledger in memory, command by command (%i)",
  { timeout: 120_000 },
  (index, shape) => {
    const random = randomOf(`file differential ${index}`);
    const next = (below: number): number => Math.floor(random() * below);
    const { path, connections } = openLedgers();
    const [{ database }] = connections;
    /** Which connection acts now; it acts several times before the other one does. */
    let turn: 0 | 1 = 0;
    const pushes: { memory: Push[]; file: Push[] } = { memory: [], file: [] };
    const unreachable = "client-1";
    const memory = new MemoryLedger((push) => {
      pushes.memory.push(push);
      return push.client !== unreachable;
    });
    const tokens: number[] = [];
    const refusals = new Set<string>();
    let behind = 0;
    const execute = (batch: readonly Command[], at: Instant): readonly Reply[] => {
      const emit = (push: Push): boolean => {
        pushes.file.push(push);
        return push.client !== unreachable;
      };
      if (next(3) === 0) turn = next(2) as 0 | 1;
      const connection = connections[turn];
      if (next(20) === 0) {
        const fails = (): boolean => false;
        inTransaction(connection, at, fails, undefined, (ledger) => {
          for (const command of batch) ledger.execute(command);
          ledger.save();
          return ROLLED_BACK;
        });
      }
      return inTransaction(connection, at, emit, new Upkeep(shape.slice), (ledger) => {
        const replies = batch.map((command) => ledger.execute(command));
        ledger.save();
        return replies;
      });
    };
    let nowUs = 1_000_000_000;
    for (let step = 0; step < STEPS; step += 1) {
      if (shape.isWild && next(60) === 0) nowUs -= 300 * MS;
      // Within bounds there are locks of a hundred years, and tokens a year ahead.
      if (shape.isWild && step % 250 === 0) {
        const other = openSqlite(path);
        other.exec("DELETE FROM name");
        other.close();
        memory.forget();
      }
      if (shape.isQuick) nowUs += next(30) === 0 ? 500 * MS : next(10);
      else nowUs += next(4) === 0 ? next(step % 500 < 20 ? 200 * MS : 10 * MS) : next(500);
      const at = { us: nowUs, wallUs: 1_700_000_000_000_000 + nowUs };
      const batch = Array.from({ length: 1 + (next(4) === 0 ? next(4) : 0) }, () =>
        draw(next, shape, nowUs, tokens),
      ).map((command) =>
        shape.isWild && next(12) === 0 ? withExtremeNumber(command, at.wallUs, next) : command,
      );
      const upkeep = new Upkeep(shape.slice);
      const expected: Reply[] = batch.map((command) => {
        const reply = memory.execute(command, at, upkeep);
        behind += Number(upkeep.isBehind);
        return reply;
      });

      const replies = execute(batch, at);
      // The comparison of vitest takes as long as all the rest; it shows the difference.
      if (!isDeepStrictEqual([replies, pushes.file], [expected, pushes.memory])) {
        expect({ step, batch, replies }).toEqual({ step, batch, replies: expected });
        expect(pushes.file).toEqual(pushes.memory);
      }
      for (const push of pushes.memory) {
        if (push.type === "granted") tokens.push(push.grant.token);
      }
      for (const reply of expected) {
        if (reply.type === "granted") tokens.push(reply.token);
        if (reply.type === "refused") refusals.add(reply.reason);
      }
      pushes.file = [];
      pushes.memory = [];
      const names = database.all(NAMES, []).length;
      if (names !== memory.size) expect(names).toBe(memory.size);
    }

    if (shape.isWild) expect(refusals).toEqual(new Set(["terms", "seen"]));
    if (shape.slice) expect(behind).toBeGreaterThan(MIN_CASES);

    // A name at rest takes no room: what the first look hands off is over at the second.
    for (const laterUs of [1e9, 2e9, 3e9, 4e9, 5e9, 6e9, 7e9, 4e15]) {
      const at = { us: nowUs + laterUs, wallUs: 1_700_000_000_000_000 + nowUs + laterUs };
      const [connection] = connections;
      inTransaction(
        connection,
        at,
        () => true,
        undefined,
        (ledger) => {
          for (const key of KEYS) ledger.execute({ type: "inspect", key });
          ledger.save();
        },
      );
    }
    expect(database.all(NAMES, [])).toEqual([]);
    for (const connection of connections) connection.database.close();
  },
);
