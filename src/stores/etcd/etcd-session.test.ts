import { beforeEach, describe, expect, it } from "vitest";
import { claimOf } from "../../../test/fixtures/ledger-server.js";
import { ManualRuntime } from "../../../test/fixtures/manual-runtime.js";
import type { EtcdCalls, Sendings } from "./calls.js";
import { etcdError } from "./errors.js";
import { EtcdSession } from "./etcd-session.js";
import { Layout } from "./layout.js";
import type { KeyValue, ResponseOp, TxnReply, TxnRequest } from "./wire/messages.js";

const NO_SPACE = etcdError(new Error("etcdserver: mvcc: database space exceeded"), "");
const layout = new Layout("");
let session: EtcdSession;
let asked: TxnRequest[];
/** Answers one transaction after the other. */
let answers: ((request: TxnRequest, sendings: Sendings) => TxnReply | Promise<TxnReply>)[];

beforeEach(() => {
  const { clock, timers } = new ManualRuntime();
  const runtime = { clock, timers, random: { id: () => "0123456789abcdef", fraction: () => 0 } };
  asked = [];
  answers = [];
  const txn = async (request: TxnRequest, _: number, sendings: Sendings): Promise<TxnReply> => {
    asked.push(request);
    sendings.count += 1;
    return (answers.shift() ?? refuse("done"))(request, sendings);
  };
  const calls = {
    txn,
    delete: async (key: Buffer, limitMs: number, sendings: Sendings) => {
      const reply = await txn({ success: [{ requestDeleteRange: { key } }] }, limitMs, sendings);
      return { header: reply.header, deleted: 1n };
    },
    grantLease: async () => {},
    revokeLease: async () => {},
  } as unknown as EtcdCalls;
  session = new EtcdSession("1f", 5n, { calls, layout, runtime });
});

function reply(revision: number, succeeded: boolean, responses: ResponseOp[]): TxnReply {
  return { header: { revision: BigInt(revision), raftTerm: 1n }, succeeded, responses };
}

function kv(key: string, revision: number): KeyValue {
  const value = Buffer.alloc(0);
  const at = BigInt(revision);
  return { key: Buffer.from(key), value, createRevision: at, modRevision: at, lease: 31n };
}

function range(...kvs: KeyValue[]): ResponseOp {
  return { responseRange: { header: { revision: 9n, raftTerm: 1n }, kvs } };
}

/** The transaction finds its conditions broken by these keys. */
function refuse(...keys: string[]) {
  return (): TxnReply => {
    const guard = kv(String(layout.session("1f")), 5);
    return reply(9, false, [range(guard), range(...keys.map((key) => kv(key, 3)))]);
  };
}

function enterAt(revision: number, key: string) {
  return (): TxnReply => reply(revision, true, [{}, range(kv(key, revision))]);
}

const own = "m/1f.x.1.-.0-0";

describe("an entry that is asked for only where the queue is empty", () => {
  it("is made where only longer names have keys", async () => {
    answers = [refuse("m/below/2a"), enterAt(10, own)];
    const entry = session.makeEntry(claimOf("o", { name: "m" }), "");
    const entering = await session.enter(entry, "if_empty", 1_000);
    expect(entering).toMatchObject({ type: "entered", listing: { entries: [{ token: 10n }] } });
    expect(asked.map(({ compare }) => compare?.length)).toEqual([3, 2]);
  });

  it("is not made where the queue has an entry, and is not removed either", async () => {
    answers = [refuse("m/2a")];
    const entry = session.makeEntry(claimOf("o", { name: "m" }), "");
    const entering = await session.enter(entry, "if_empty", 1_000);
    expect(entering).toMatchObject({ type: "refused", mayStillArrive: false });
    expect(await session.leave(entry, {}, 1_000)).toMatchObject({ wasThere: false });
    expect(asked).toHaveLength(1);
    // Its name is free for the next entry.
    expect(session.makeEntry(claimOf("p", { name: "m" }), "").id).toBe(entry.id);
  });
});

describe("an entry whose request was sent twice, while the database is full", () => {
  async function enterTwice(): Promise<ReturnType<EtcdSession["makeEntry"]>> {
    const entry = session.makeEntry(claimOf("o", { name: "m" }), "");
    answers = [
      (_request, sendings) => {
        sendings.count += 1;
        return enterAt(10, own)();
      },
    ];
    await session.enter(entry, "any", 1_000);
    return entry;
  }

  it("leaves without the guard, and the session takes no more entries", async () => {
    const entry = await enterTwice();
    answers = [() => Promise.reject(NO_SPACE), () => reply(12, true, [])];
    expect(session.takesEntries).toBe(true);
    expect(await session.leave(entry, {}, 1_000)).toMatchObject({ wasThere: true });
    expect(session.takesEntries).toBe(false);
  });

  it("stays, with an error, when the mark of its work cannot be written", async () => {
    const entry = await enterTwice();
    answers = [() => Promise.reject(NO_SPACE), () => reply(12, true, [])];
    const mark = { ttlMs: 5_000, text: "{}" };
    await expect(session.leave(entry, { mark }, 1_000)).rejects.toBe(NO_SPACE);
    expect(asked).toHaveLength(2);
  });
});
