/** The messages of this store compared with those of the package `etcd3`, read from its files. */
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { check } from "../../../../test/fixtures/property.js";
import { Unreadable } from "../../../events/foreign-data.js";
import { DELETE, GRANT, KEEP_ALIVE, RANGE, TXN, WATCH } from "./messages.js";

interface OwnMethod {
  readonly path: string;
  readonly request: { encode(value: never): Buffer };
}

interface OtherMethod {
  readonly path: string;
  requestDeserialize(bytes: Buffer): object;
  responseSerialize(reply: object): Buffer;
}

const load = createRequire(createRequire(import.meta.url).resolve("etcd3"));
const folder = dirname(load.resolve("etcd3/package.json"));
const services = load("@grpc/proto-loader").loadSync(join(folder, "proto/rpc.proto"), {
  longs: String,
  enums: String,
}) as Record<string, Record<string, OtherMethod>>;
const others = Object.values(services).flatMap((service) => Object.values(service));

function otherOf({ path }: { readonly path: string }): OtherMethod {
  return others.find((one) => one.path === path) as OtherMethod;
}

const bytes = fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array));
const int = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.bigInt({ min: 0n, max: 300n }),
  fc.constantFrom(2n ** 53n - 1n, 2n ** 53n, 2n ** 53n + 1n, -1n, 127n, 128n),
);
const some = { requiredKeys: [] };
const range = fc.record(
  { key: bytes, rangeEnd: bytes, serializable: fc.boolean(), keysOnly: fc.boolean() },
  some,
);
const put = fc.record(
  { key: bytes, value: bytes, lease: int, ignoreValue: fc.boolean(), ignoreLease: fc.boolean() },
  some,
);
const compare = fc.oneof(
  fc.record({ key: bytes, createRevision: int, rangeEnd: bytes }).map((one) => {
    return { result: "Equal", target: "Create", ...one };
  }),
  fc.record({ key: bytes, modRevision: int }).map((one) => {
    return { result: "Equal", target: "Mod", ...one };
  }),
);
const { txn } = fc.letrec((tie) => ({
  operation: fc.oneof(
    { maxDepth: 2 },
    range.map((requestRange) => ({ requestRange })),
    put.map((requestPut) => ({ requestPut })),
    bytes.map((key) => ({ requestDeleteRange: { key } })),
    tie("txn").map((requestTxn) => ({ requestTxn })),
  ),
  txn: fc.record(
    {
      compare: fc.array(compare, { maxLength: 3 }),
      success: fc.array(tie("operation"), { maxLength: 3 }),
      failure: fc.array(tie("operation"), { maxLength: 3 }),
    },
    some,
  ),
}));
const watch = fc.oneof(
  fc
    .record({
      watchId: int,
      key: bytes,
      startRevision: int,
      prevKv: fc.boolean(),
      filters: fc.subarray(["Noput", "Nodelete"]),
    })
    .map((createRequest) => ({ createRequest })),
  int.map((watchId) => ({ cancelRequest: { watchId } })),
);

const THEIR_NAMES: Readonly<Record<string, string>> = { id: "ID", ttl: "TTL" };

/** As `etcd3` reads and writes it: 64-bit numbers as text, and without empty lists. */
function plain(value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  if (typeof value !== "object" || value === null || Buffer.isBuffer(value)) return value;
  if (Array.isArray(value)) return value.map(plain);
  const kept = Object.entries(value).filter(([, one]) => !Array.isArray(one) || one.length > 0);
  return Object.fromEntries(kept.map(([name, one]) => [THEIR_NAMES[name] ?? name, plain(one)]));
}

describe("a request", () => {
  it.each<[string, OwnMethod, fc.Arbitrary<unknown>]>([
    ["of a transaction", TXN, txn],
    ["of a range", RANGE, range],
    ["of a deletion", DELETE, fc.record({ key: bytes })],
    ["of a lease", GRANT, fc.record({ ttl: int, id: int })],
    ["of a keep-alive", KEEP_ALIVE, fc.record({ id: int })],
    ["of a watch", WATCH, watch],
  ])("%s is read by etcd3 as it was meant", (_, method, values) => {
    const other = otherOf(method);
    check(
      fc.property(values, (value) => {
        const written = method.request.encode(value as never);
        expect(plain(other.requestDeserialize(written))).toEqual(plain(value));
      }),
    );
  });
});

const header = fc.record({ clusterId: int, memberId: int, revision: int, raftTerm: int });
const keyValue = fc.record({
  key: bytes,
  createRevision: int,
  modRevision: int,
  version: int,
  value: bytes,
  lease: int,
});

describe("a reply", () => {
  it("of a transaction is read as etcd3 writes it", () => {
    const other = otherOf(TXN);
    const kvs = fc.array(keyValue, { maxLength: 3 });
    check(
      fc.property(header, fc.boolean(), kvs, int, (head, succeeded, found, deleted) => {
        const responses = [
          { responsePut: { header: head } },
          { responseRange: { header: head, kvs: found, more: true, count: "7" } },
          { responseDeleteRange: { header: head, deleted } },
          { responseTxn: { succeeded, responses: [{ responseRange: { kvs: found } }] } },
        ];
        const written = other.responseSerialize(
          plain({ header: head, succeeded, responses }) as object,
        );
        const read = TXN.reply.decode(written);
        expect(read.header.revision).toBe(head.revision);
        expect(read.succeeded).toBe(succeeded);
        const [, ranged, removed, inner] = read.responses;
        const expected = found.map(({ version: _, ...kept }) => kept);
        expect(ranged?.responseRange?.kvs).toEqual(expected);
        expect(removed?.responseDeleteRange?.deleted).toBe(deleted);
        expect(inner?.responseTxn?.responses[0]?.responseRange?.kvs).toEqual(expected);
      }),
    );
  });

  it("of a watch is read as etcd3 writes it, with defaults for what is missing", () => {
    const events = [
      { type: "Delete", kv: { key: Buffer.from("a"), modRevision: 9n } },
      { kv: { key: Buffer.from("b") }, prevKv: { value: Buffer.from("c") } },
    ];
    const written = otherOf(WATCH).responseSerialize(
      plain({ watchId: -1n, created: true, events }) as object,
    );
    const empty = { createRevision: 0n, modRevision: 0n, lease: 0n, value: Buffer.alloc(0) };
    expect(WATCH.reply.decode(written)).toEqual({
      watchId: -1n,
      created: true,
      canceled: false,
      events: [
        { type: "Delete", kv: { ...empty, key: Buffer.from("a"), modRevision: 9n } },
        {
          type: "Put",
          kv: { ...empty, key: Buffer.from("b") },
          prevKv: { ...empty, key: Buffer.alloc(0), value: Buffer.from("c") },
        },
      ],
    });
  });

  it("that is cut short or garbage is never read as another message's fields", () => {
    const written = otherOf(TXN).responseSerialize({
      header: { revision: "300" },
      succeeded: true,
      responses: [{ responseRange: { kvs: [{ key: Buffer.from("key") }] } }],
    });
    expect(() => TXN.reply.decode(written.subarray(0, -1))).toThrow(Unreadable);
    check(
      fc.property(bytes, (garbage) => {
        try {
          TXN.reply.decode(garbage);
        } catch (error) {
          expect(error).toBeInstanceOf(Unreadable);
        }
      }),
    );
  });
});
