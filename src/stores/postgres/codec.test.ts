import { describe, expect, it } from "vitest";
import { requestOf } from "../../../test/fixtures/ledger-script.js";
import { isForeign, Unreadable } from "../../events/foreign-data.js";
import type { Acquire, Command, Release, Renew } from "../../rules/ledger-command.js";
import { decode, decodePage, decodePush, executeStatement } from "./codec.js";

const MAX = `${Number.MAX_SAFE_INTEGER}`;

/** The commands of a statement, without the fields that they do not have. */
function commandsOf(...commands: readonly Command[]): string[] {
  const [, , records = ""] = executeStatement("", commands).values;
  return records
    .slice(3, -3)
    .split(')","(')
    .map((record) => record.replace(/,+/g, ","));
}

function mutex(key: string, owner: string, given: Partial<Acquire> = {}): Acquire {
  return requestOf(key, owner, { mode: "exclusive", client: "c", meta: "{}", ...given });
}

function release(key: string, owner: string, tombstoneUs = 0): Release {
  return { type: "release", key, owner, tombstoneUs, keep: null };
}

function renew(key: string, owner: string, resumedBy?: string): Renew {
  const terms = { ttlUs: 5, notAfterUs: 6, seenToken: 7, ...(resumedBy && { resumedBy }) };
  return { type: "renew", key, owner, ...terms };
}

describe("executeStatement", () => {
  it("makes one command of those that have the same terms", () => {
    const commands = [release("a", "1"), release("b", "2"), renew("c", "3"), renew("d", "4")];
    const [, , , names, subjects] = executeStatement("", commands).values;
    expect(commandsOf(...commands)).toEqual(["release,2,0,", "renew,2,5,6,7,"]);
    expect(names).toBe('{"a","b","c","d"}');
    expect(subjects).toBe('{"1","2","3","4"}');
  });

  it("starts another one for other terms, a client that resumed, or a name that it has", () => {
    const sizesOf = (...commands: Command[]): (string | undefined)[] => {
      return commandsOf(...commands).map((record) => record.split(",")[1]);
    };
    expect(sizesOf(release("a", "8"), release("a", "9"))).toEqual(["1", "1"]);
    expect(sizesOf(release("a", "8"), release("b", "9", 10))).toEqual(["1", "1"]);
    const marks = (meta: string): Release => ({
      ...release(meta, "9"),
      keep: { ttlUs: 5, meta },
    });
    expect(sizesOf(marks("a"), release("b", "9"))).toEqual(["1", "1"]);
    expect(sizesOf(release("b", "9"), marks("a"))).toEqual(["1", "1"]);
    expect(sizesOf(marks("a"), marks("b"))).toEqual(["1", "1"]);
    expect(sizesOf(renew("a", "8"), renew("b", "9", "h"))).toEqual(["1", "1"]);
    expect(sizesOf(renew("a", "8", "h"), renew("b", "9"))).toEqual(["1", "1"]);
    expect(sizesOf(renew("a", "8"), release("b", "9"))).toEqual(["1", "1"]);
    expect(sizesOf(mutex("a", "8"), mutex("b", "9"))).toEqual(["2"]);
  });

  it("escapes texts once for the record and once for the array", () => {
    const meta = '{"a":"\\ ,)"}';
    const [namespace, isSynchronous, records] = executeStatement(
      "n\0",
      [{ type: "revoke", key: "a", token: 5, reason: meta }],
      true,
    ).values;
    expect([namespace, isSynchronous]).toEqual(["n\u0001\u0001", "true"]);
    const record = JSON.parse(`[${records?.slice(1, -1)}]`)[0];
    expect(record).toBe(`(revoke,1,,,,,,,,,,,,,,,${JSON.stringify(meta)})`);
  });

  it("sends numbers that no client should send as numbers that are refused", () => {
    const numbers = { ttlUs: 0.5, weight: Number.NaN, limit: 2 ** 53, span: -1, seenToken: -1 };
    const command = mutex("a", "1", { ...numbers, notAfterUs: Number.POSITIVE_INFINITY });
    expect(commandsOf({ ...command, meta: "m" })).toEqual([
      `acquire,1,${MAX},${MAX},0,c,true,0,0,0,600000000,600000000,true,m,`,
    ]);
  });
});

describe("decode", () => {
  const inspect: Command = { type: "inspect", key: "l:a" };

  it("reads the time, the run and the replies", () => {
    const answer = '5 run\nG77\nR\nO["v","why\\u0001\\u0001"]';
    expect(decode([mutex("a", "1"), release("b", "2"), renew("c", "3")], answer)).toEqual({
      nowUs: 5,
      node: "run",
      replies: [
        { type: "granted", token: 77, span: 1, remainingUs: 600_000_000 },
        { type: "released", held: true, offerUs: 0, more: false },
        { type: "gone", reason: "revoked", detail: "why\0" },
      ],
    });
  });

  it("makes an unreadable reply the error of its own command", () => {
    for (const line of [
      "",
      "?",
      "R",
      "I",
      "I[",
      "I{}",
      "I[[],[]]",
      'I[[],[],"mark"]',
      'I[[[1,2,3,"x",1,1,-1,7]],[],null]',
      'I[[[1,9007199254740992,3,"x",1,1,-1,"{}"]],[],null]',
      '!"bigint out of range"',
    ]) {
      const { replies } = decode([inspect, release("b", "2")], `5 run\n${line}\nR`);
      expect([line, isForeign(replies[0])]).toEqual([line, true]);
      expect(replies[1]).toMatchObject({ type: "released" });
    }
  });

  it("refuses an answer that is none", () => {
    for (const answer of [null, 5, "", "5 run", "x run\nR", "-5 run\nR", "5 run\nR\nR"]) {
      expect(() => decode([release("a", "1")], answer)).toThrow(Unreadable);
    }
  });
});

describe("decodePush", () => {
  it("reads grants, marks and revocations", () => {
    const about = { client: "c", key: "l:\0" };
    const key = '"l:\\u0001\\u0001"';
    expect(decodePush("c", `["g",${key},"o",1,2,3,4]`)).toEqual({
      ...about,
      type: "granted",
      grant: { owner: "o", token: 1, span: 2, grantedUs: 3, expiryUs: 4 },
    });
    const ended = { ...about, owner: "o", token: 9 };
    expect(decodePush("c", `["m",${key},"o",9,"{}"]`)).toEqual({
      ...ended,
      type: "marked",
      meta: "{}",
    });
    expect(decodePush("c", `["v",${key},"o",9,"why"]`)).toEqual({
      ...ended,
      type: "revoked",
      reason: "why",
    });
  });

  it("reads that a message was too long, and refuses all else", () => {
    expect(decodePush("c", "?")).toBeNull();
    for (const payload of ["", "{}", "[]", '["x","k","o",1,""]', '["g","k","o",-1,1,1,1]']) {
      expect(() => decodePush("c", payload)).toThrow();
    }
  });
});

it("decodes a page of names, and passes over those that cannot be read", () => {
  const foreign: string[] = [];
  const answer = '5\n"l:b\\u0001\\u0002"\n["l:a",[[],[],[7,8,"{}"]]]\n["l:b",[[],[1],null]]';
  expect(decodePage(answer, (key) => foreign.push(key))).toEqual({
    names: [
      {
        key: "l:a",
        view: {
          type: "view",
          holders: [],
          waiters: [],
          mark: { token: 7, remainingUs: 8, meta: "{}" },
        },
      },
    ],
    after: "l:b\u0001\u0002",
  });
  expect(foreign).toEqual(["l:b"]);
  expect(decodePage("5\nnull", () => {})).toEqual({ names: [], after: null });
});
