/** The messages of this store beside those of the package `etcd3`, which reads them from files. */
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Unreadable } from "../../foreign-data.js";
import { DELETE, GRANT, KEEP_ALIVE, RANGE, TXN, WATCH } from "./etcd-messages.js";

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
  keepCase: true,
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
const id = int.map(String);
const some = { requiredKeys: [] };
const range = fc.record(
  { key: bytes, range_end: bytes, serializable: fc.boolean(), keys_only: fc.boolean() },
  some,
);
const put = fc.record(
  { key: bytes, value: bytes, lease: id, ignore_value: fc.boolean(), ignore_lease: fc.boolean() },
  some,
);
const compare = fc.oneof(
  fc.record({ key: bytes, create_revision: id, range_end: bytes }).map((one) => {
    return { result: "Equal", target: "Create", ...one };
  }),
  fc.record({ key: bytes, mod_revision: id }).map((one) => {
    return { result: "Equal", target: "Mod", ...one };
  }),
);
const { txn } = fc.letrec((tie) => ({
  operation: fc.oneof(
    { maxDepth: 2 },
    range.map((request_range) => ({ request_range })),
    put.map((request_put) => ({ request_put })),
    bytes.map((key) => ({ request_delete_range: { key } })),
    tie("txn").map((request_txn) => ({ request_txn })),
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
      watch_id: id,
      key: bytes,
      start_revision: id,
      prev_kv: fc.boolean(),
      filters: fc.subarray(["Noput", "Nodelete"]),
    })
    .map((create_request) => ({ create_request })),
  id.map((watch_id) => ({ cancel_request: { watch_id } })),
);

/** Without lists that are empty, which are not written. */
function plain(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Buffer.isBuffer(value)) return value;
  if (Array.isArray(value)) return value.map(plain);
  const kept = Object.entries(value).filter(([, one]) => !Array.isArray(one) || one.length > 0);
  return Object.fromEntries(kept.map(([name, one]) => [name, plain(one)]));
}

describe("a request", () => {
  it.each<[string, OwnMethod, fc.Arbitrary<unknown>]>([
    ["of a transaction", TXN, txn],
    ["of a range", RANGE, range],
    ["of a deletion", DELETE, fc.record({ key: bytes })],
    ["of a lease", GRANT, fc.record({ TTL: id, ID: id })],
    ["of a keep-alive", KEEP_ALIVE, fc.record({ ID: id })],
    ["of a watch", WATCH, watch],
  ])("%s is read by etcd3 as it was meant", (_, method, values) => {
    const other = otherOf(method);
    fc.assert(
      fc.property(values, (value) => {
        const written = method.request.encode(value as never);
        expect(plain(other.requestDeserialize(written))).toEqual(plain(value));
      }),
    );
  });
});

const header = fc.record({ cluster_id: id, member_id: id, revision: id, raft_term: id });
const keyValue = fc.record({
  key: bytes,
  create_revision: id,
  mod_revision: id,
  version: id,
  value: bytes,
  lease: id,
});

describe("a reply", () => {
  it("of a transaction is read as etcd3 writes it", () => {
    const other = otherOf(TXN);
    const kvs = fc.array(keyValue, { maxLength: 3 });
    fc.assert(
      fc.property(header, fc.boolean(), kvs, id, (head, succeeded, found, deleted) => {
        const responses = [
          { response_put: { header: head } },
          { response_range: { header: head, kvs: found, more: true, count: "7" } },
          { response_delete_range: { header: head, deleted } },
          { response_txn: { succeeded, responses: [{ response_range: { kvs: found } }] } },
        ];
        const written = other.responseSerialize({ header: head, succeeded, responses });
        const read = TXN.reply.decode(written);
        expect(read.header.revision).toBe(head.revision);
        expect(read.succeeded).toBe(succeeded);
        const [, ranged, removed, inner] = read.responses;
        const expected = found.map(({ version: _, ...kept }) => kept);
        expect(ranged?.response_range?.kvs).toEqual(expected);
        expect(removed?.response_delete_range?.deleted).toBe(deleted);
        expect(inner?.response_txn?.responses[0]?.response_range?.kvs).toEqual(expected);
      }),
    );
  });

  it("of a watch is read as etcd3 writes it, with defaults for what is missing", () => {
    const events = [
      { type: "Delete", kv: { key: Buffer.from("a"), mod_revision: "9" } },
      { kv: { key: Buffer.from("b") }, prev_kv: { value: Buffer.from("c") } },
    ];
    const written = otherOf(WATCH).responseSerialize({ watch_id: "-1", created: true, events });
    const empty = { create_revision: "0", mod_revision: "0", lease: "0", value: Buffer.alloc(0) };
    expect(WATCH.reply.decode(written)).toEqual({
      watch_id: "-1",
      created: true,
      canceled: false,
      events: [
        { type: "Delete", kv: { ...empty, key: Buffer.from("a"), mod_revision: "9" } },
        {
          type: "Put",
          kv: { ...empty, key: Buffer.from("b") },
          prev_kv: { ...empty, key: Buffer.alloc(0), value: Buffer.from("c") },
        },
      ],
    });
  });

  it("that is cut short or garbage is never read as another message's fields", () => {
    const written = otherOf(TXN).responseSerialize({
      header: { revision: "300" },
      succeeded: true,
      responses: [{ response_range: { kvs: [{ key: Buffer.from("key") }] } }],
    });
    expect(() => TXN.reply.decode(written.subarray(0, -1))).toThrow(Unreadable);
    fc.assert(
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
