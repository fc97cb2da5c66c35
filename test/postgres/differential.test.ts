/**
 * The ledger is the specification. The same random commands go through the functions in Postgres
 * and, at the times of their replies, through the ledger. Every reply and every push must be the
 * same. In Postgres each name has a last token of its own, so each has a ledger of its own here.
 */

import type { Client } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Command, Push, Reply } from "../../src/rules/ledger-command.js";
import { Upkeep } from "../../src/rules/upkeep.js";
import { MemoryLedger } from "../../src/stores/memory/memory-ledger.js";
import { channelOf, type decode, decodePush } from "../../src/stores/postgres/codec.js";
import { SCHEMA } from "../../src/stores/postgres/schema.generated.js";
import {
  CommandDrawer,
  DEAF,
  KINDS,
  type Kind,
  LISTENING,
  NAMES,
} from "../fixtures/command-drawer.js";
import { isFull } from "../fixtures/depth.js";
import { LedgerFunctions } from "../fixtures/ledger-functions.js";
import { OVERLOADS } from "../fixtures/overloads.js";
import { SEED } from "../fixtures/seed.js";
import { type PostgresServer, startPostgres } from "../servers/postgres.js";

const COMMANDS = isFull ? 40_000 : 4_000;
/** Fewer cases of a kind would prove little about it. */
const ENOUGH = COMMANDS / 4_000;
const LIMIT_MS = 30 * COMMANDS;
const SPACE = "differential";
const CLIENTS = [...LISTENING, DEAF];
/** How long a call takes on an idle machine. */
const CALL_US = 500;
const REPLIES = [
  "granted",
  "queued",
  "busy",
  "marked",
  "stale",
  "renewed",
  "released",
  "heartbeat",
  "view",
  "revoked",
  "gone, missing",
  "gone, replaced",
  "gone, revoked",
  "refused, terms",
  "refused, seen",
];
const TABLES = ["name", "holder", "waiter", "client", "tombstone"];

/**
 * The keys of connections by which commands come: one that lasts, one that has ended, and none, as
 * behind a pooler.
 */
const LASTING = "4711";
const ENDED = "815";
const CONNECTIONS: readonly string[] = [LASTING, ENDED, ""];

/** Only the schema of these tests has a clock that can be shifted, and a smaller slice. */
function schemaOf(kind: Kind): string {
  const clock = "date_part('epoch', clock_timestamp())";
  const shift = "coalesce(nullif(current_setting('holdfast.shift', true), ''), '0')::interval";
  const slice = kind === "crowds, in slices" ? "1" : "64";
  const shifted = `date_part('epoch', clock_timestamp() + ${shift})`;
  const changed = SCHEMA.replace(clock, shifted).replace(
    /(function holdfast\.slice_3\(\)[^;]*?select )64/,
    `$1${slice}`,
  );
  expect(changed).toMatch(new RegExp(`slice_3\\(\\)[^;]*?select ${slice}\\n`));
  expect(changed).toContain("holdfast.shift");
  return changed;
}

/** A row whose counts are not what the other tables say, or that has forgotten a time. */
const WRONG_COUNTS = `
  select n.* from holdfast.name n where
    n.shared <> (select count(*) from holdfast.holder h
        where h.namespace = n.namespace and h.key = n.key)
    or n.shared_weight <> (select coalesce(sum(h.weight), 0) from holdfast.holder h
        where h.namespace = n.namespace and h.key = n.key)
    or n.waiting <> (select count(*) from holdfast.waiter w
        where w.namespace = n.namespace and w.key = n.key)
    or n.waiting <> (select coalesce(sum(waiting), 0) from holdfast.client c
        where c.namespace = n.namespace and c.key = n.key)
    or n.silent > (select min(gone) from holdfast.client c
        where c.namespace = n.namespace and c.key = n.key)
    or n.last_tombstone < (select max(until) from holdfast.tombstone t
        where t.namespace = n.namespace and t.key = n.key)
    or exists (select from holdfast.client c where c.namespace = n.namespace and c.key = n.key
        and c.place is distinct from (select min(place) from holdfast.waiter w where
          w.namespace = n.namespace and w.key = n.key and w.client = c.id))`;

let server: PostgresServer;
/** How often each kind of reply was compared. */
const seen = new Map<string, number>();
const open: Client[] = [];

beforeAll(async () => {
  server = await startPostgres();
});

afterAll(async () => {
  await Promise.all(open.map((client) => client.end()));
  await server?.close();
});

async function connect(database: string): Promise<Client> {
  const client = await server.client({ connectionString: server.url.replace(/\w+$/, database) });
  open.push(client);
  return client;
}

describe(`the functions and the ledger (seed ${SEED})`, () => {
  test.for(KINDS.map((kind, at) => [kind, at] as const))(
    "give the same replies and pushes: %s",
    { timeout: LIMIT_MS },
    async ([kind, at]) => {
      const database = `differential${at}`;
      await server.ask(`create database ${database}`);
      const [client, listener] = [await connect(database), await connect(database)];
      await client.query(schemaOf(kind));
      await client.query(OVERLOADS);
      const heard: Push[] = [];
      let settled = 0;
      listener.on("notification", ({ channel, payload = "" }) => {
        const push = decodePush(channel.replace(channelOf(""), ""), payload);
        if (push) heard.push(push);
        else settled += 1;
      });
      for (const name of CLIENTS) await listener.query(`listen "${channelOf(name)}"`);
      await listener.query("select pg_advisory_lock($1)", [LASTING]);
      const settlePushes = async (): Promise<void> => {
        const before = settled;
        await client.query("select pg_notify($1, '?')", [channelOf(DEAF)]);
        await expect.poll(() => settled).toBe(before + 1);
      };
      const functions = new LedgerFunctions(client, SPACE);
      const execute = async (commands: readonly Command[]): Promise<ReturnType<typeof decode>> => {
        try {
          return await functions.execute(commands);
        } catch (error) {
          // The latest time of a command came while it ran: nothing was done, as the store knows.
          if ((error as { code?: string }).code === "40001") return execute(commands);
          throw error;
        }
      };

      const draw = new CommandDrawer(SEED, kind);
      const pushed: Push[] = [];
      const ledgers = new Map<string, MemoryLedger>();
      let connection = "";
      /** The connection of each client's last word about each name. */
      const spokenBy = new Map<string, string>();
      let passedOver = 0;
      const isReachable = ({ key, client: id }: Push): boolean => {
        const by = spokenBy.get(`${id} ${key}`);
        return by !== ENDED || by === connection;
      };
      const expectedReply = (command: Command, nowUs: number, upkeep: Upkeep): Reply => {
        const ledger = ledgers.get(command.key) ?? new MemoryLedger(emit);
        ledgers.set(command.key, ledger);
        if ("client" in command) spokenBy.set(`${command.client} ${command.key}`, connection);
        return ledger.execute(command, { us: nowUs, wallUs: nowUs }, upkeep);
      };
      const emit = (push: Push): boolean => {
        if (push.type === "granted" && !isReachable(push)) {
          passedOver += 1;
          return false;
        }
        pushed.push(push);
        if (push.type === "granted") remember(push.key, push.grant.owner, push.grant.token);
        return true;
      };
      const remember = (key: string, owner: string, token: number): void => {
        draw.grants.push({ key, owner, token });
      };
      /** Drops what has expired, which an earlier time would make valid again; sets the clock. */
      const shiftClock = async (): Promise<void> => {
        const looks = NAMES.map((name) => ({ type: "inspect", key: `l:${name}` }) as const);
        const { nowUs } = await execute(looks);
        for (const look of looks) expectedReply(look, nowUs, new Upkeep());
        await client.query("delete from holdfast.tombstone where until <= $1", [nowUs]);
        const shift = draw.pick(["0", "-40 ms", "-200 ms", "-1 s", "50 ms", "-50 years"]);
        await client.query("select set_config('holdfast.shift', $1, false)", [shift]);
        draw.nowUs = (await execute([])).nowUs;
      };

      const upkeep = kind === "crowds, in slices" ? new Upkeep(1) : new Upkeep();
      const isSet = kind === "a clock that jumps";
      const isHalf = kind === "extreme numbers" || isSet;
      // Slices of one are behind in few commands only.
      const most = COMMANDS * (isHalf ? 0.5 : upkeep.slice === 1 ? 2 : 1);
      let behind = 0;
      draw.nowUs = (await execute([])).nowUs;
      for (let sent = 0, round = 0; sent < most; round += 1) {
        const size = draw.below(2) === 0 ? 1 : 1 + draw.below(8);
        if (draw.below(3) === 0) {
          connection = draw.pick(CONNECTIONS);
          await client.query("select set_config('holdfast.connection', $1, false)", [connection]);
        }
        const commands = Array.from({ length: size }, () => draw.command());
        const startedMs = performance.now();
        const { nowUs, replies } = await execute(commands);
        const slowness = Math.min(1000 * (performance.now() - startedMs), 100 * CALL_US) / CALL_US;
        draw.pace = Math.max(1, 0.95 * draw.pace + 0.05 * slowness);
        upkeep.startBatch();
        const expected = commands.map((command) => {
          const reply = expectedReply(command, nowUs, upkeep);
          behind += Number(upkeep.isBehind);
          return reply;
        });
        expect({ commands, replies }).toEqual({ commands, replies: expected });
        for (const [nth, reply] of expected.entries()) {
          const command = commands[nth] as Command;
          const isReasoned = reply.type === "gone" || reply.type === "refused";
          const type = isReasoned ? `${reply.type}, ${reply.reason}` : reply.type;
          seen.set(type, (seen.get(type) ?? 0) + 1);
          if (reply.type !== "granted" || command.type !== "acquire") continue;
          remember(command.key, command.owner, reply.token);
        }
        draw.grants.splice(0, draw.grants.length - 50);
        draw.nowUs = nowUs;
        sent += size;
        if (isSet && draw.below(40) === 0) await shiftClock();
        if (draw.below(60) === 0) {
          await new Promise((end) => setTimeout(end, draw.pace * draw.below(12)));
        }
        if (round % 250 === 0) {
          await settlePushes();
          expect(heard).toEqual(pushed);
          heard.length = pushed.length = 0;
          expect((await client.query(WRONG_COUNTS)).rows).toEqual([]);
          // Valid values include leases of a hundred years and tokens a year ahead.
          if (kind === "extreme numbers") {
            await client.query(`truncate ${TABLES.map((table) => `holdfast.${table}`).join()}`);
            ledgers.clear();
            draw.grants.length = 0;
          }
        }
      }
      await settlePushes();
      expect(heard).toEqual(pushed);
      if (upkeep.slice === 1) expect(behind).toBeGreaterThan(20 * ENOUGH);
      expect(passedOver).toBeGreaterThan(ENOUGH);
    },
  );

  // A run that did not reach a case would prove nothing about it.
  test("had every kind of reply", () => {
    const often = [...seen].filter(([, times]) => times > 2 * ENOUGH).map(([type]) => type);
    expect(often).toEqual(expect.arrayContaining(REPLIES));
  });
});
