/** A store that breaks a rule of the ledger ends the one call that meets it, and no more. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { type LedgerArbiter, LedgerServer } from "../../../test/fixtures/ledger-server.js";
import { ManualRuntime } from "../../../test/fixtures/manual-runtime.js";
import { watch } from "../../../test/fixtures/outcome.js";
import { Holdfast } from "../../api/holdfast.js";
import { InternalError } from "../../errors/index.js";
import type { Lease } from "../../lease/lease.js";
import type { Command, Reply } from "../../rules/ledger-command.js";
import { MemoryLedger } from "../../stores/memory/memory-ledger.js";
import type { Arbiter } from "./arbiter.js";
import { LedgerStore } from "./ledger-store.js";

const KEY = "l:x";
const broken = { code: "HF_INTERNAL", lockName: "x", store: "ledger" };
let runtime: ManualRuntime;
let server: LedgerServer;
let arbiter: LedgerArbiter;
let locks: Holdfast;
let other: Lease;
const escaped: unknown[] = [];
const onEscape = (error: unknown): void => void escaped.push(error);

/** Replies about the name carry the token 1, which was given away long ago. */
function withOldToken(command: Command, reply: Reply): Reply {
  return command.key === KEY && "token" in reply ? ({ ...reply, token: 1 } as Reply) : reply;
}

beforeEach(async () => {
  runtime = new ManualRuntime();
  server = new LedgerServer(runtime);
  arbiter = server.connect();
  locks = new Holdfast(new LedgerStore(arbiter));
  const lease = locks.mutex("y").acquire();
  await runtime.advance(0);
  other = await lease;
  escaped.length = 0;
  process.on("unhandledRejection", onEscape);
  process.on("uncaughtException", onEscape);
});
afterEach(async () => {
  await new Promise((resume) => setImmediate(resume));
  process.off("unhandledRejection", onEscape);
  process.off("uncaughtException", onEscape);
  expect(escaped).toEqual([]);
});

/** The lease beside it is renewed, and the owner of the failed call is withdrawn. */
async function expectTheRestToGoOn(): Promise<void> {
  arbiter.impostor = null;
  await runtime.advance(60_000);
  expect(other.state).toBe("held");
  expect(server.view(KEY)).toMatchObject({ holders: [], waiters: [] });
  const again = watch(locks.mutex("x").acquire());
  await runtime.advance(0);
  expect(again.value).toMatchObject({ state: "held" });
}

it("with a token that is not above the ones seen, in an answer", async () => {
  arbiter.impostor = (commands) => commands.map((one) => withOldToken(one, server.do(one)));
  const asked = watch(locks.mutex("x").acquire());
  await runtime.advance(0);
  expect(asked.error).toBeInstanceOf(InternalError);
  expect(asked.error).toMatchObject(broken);
  await expectTheRestToGoOn();
});

it.each([true, false])(
  "in a handoff, whether it is believed at once (%s) or not",
  async (isAtOnce) => {
    arbiter.believesPushes = isAtOnce;
    const holder = new Holdfast(new LedgerStore(server.connect()));
    const held = watch(holder.mutex("x").acquire());
    await runtime.advance(0);
    const asked = watch(locks.mutex("x").acquire());
    await runtime.advance(0);
    const { onPush } = arbiter;
    arbiter.onPush = (push) => {
      onPush(push.type === "granted" ? { ...push, grant: { ...push.grant, token: 1 } } : push);
    };
    arbiter.impostor = (commands) => commands.map((one) => withOldToken(one, server.do(one)));
    void (held.value as Lease).release();
    await runtime.advance(0);
    expect(asked.error).toMatchObject(broken);
    await expectTheRestToGoOn();
  },
);

function openLocal(replyTo: (command: Command) => Reply): Holdfast {
  const local: Arbiter = {
    name: "ledger",
    traits: arbiter.traits,
    runtime,
    isLocal: true,
    believesPushes: true,
    shardOf: () => "",
    execute: (_shard, commands) => ({
      nowUs: server.at.us,
      node: "",
      replies: commands.map(replyTo),
    }),
    list: () => arbiter.list(""),
    listen: () => {},
    close: async () => {},
  };
  return new Holdfast(new LedgerStore(local));
}

it("in a store of this process, where the answer comes within the call", async () => {
  const ledger = new MemoryLedger(() => false);
  const here = openLocal((one) => withOldToken(one, ledger.execute(one, server.at)));
  const beside = await here.mutex("y").acquire();
  await expect(here.mutex("x").acquire()).rejects.toMatchObject(broken);
  expect(ledger.execute({ type: "inspect", key: KEY }, server.at).holders).toEqual([]);
  expect(beside.state).toBe("held");
});

it("by a throw, in a store of this process", async () => {
  const ledger = new MemoryLedger(() => false);
  const here = openLocal((one) => {
    if (one.key === KEY) throw new Error("disk full");
    return ledger.execute(one, server.at);
  });
  const beside = await here.mutex("y").acquire();
  const asked = watch(here.mutex("x").acquire({ waitMs: 2_000 }));
  await runtime.advance(20_000);
  expect(asked.error).toMatchObject({ code: "HF_STORE", outcome: "unknown", lockName: "x" });
  expect(beside.state).toBe("held");
});
