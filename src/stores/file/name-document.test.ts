import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { commandOf, ledgerStep } from "../../../test/fixtures/ledger-step.js";
import { PlainState } from "../../../test/fixtures/plain-state.js";
import { check } from "../../../test/fixtures/property.js";
import { NO_LIMIT } from "../../rules/fits.js";
import { apply } from "../../rules/ledger.js";
import type { Command, Instant, Push, Reply } from "../../rules/ledger-command.js";
import type { LedgerState } from "../../rules/ledger-state.js";
import { Upkeep } from "../../rules/upkeep.js";
import { NameDocument } from "./name-document.js";

const KEY = "l:x";
const AT: Instant = { us: 1_000_000, wallUs: 1_790_000_000_000_000 };

/** Everything that a state lets its ledger say. */
function outcome(
  state: LedgerState,
  command: Command,
  at: Instant,
  { slice, unreachable }: { slice: number; unreachable: string | null },
) {
  const pushes: Push[] = [];
  const emit = (push: Push): boolean => {
    pushes.push(push);
    return push.client !== unreachable;
  };
  const upkeep = new Upkeep(slice);
  const reply = apply(state, command, at, emit, upkeep);
  const view: Reply = apply(state, { type: "inspect", key: KEY }, at, emit, upkeep);
  return { reply, view, pushes };
}

describe("NameDocument", { timeout: 30_000 }, () => {
  it.each([0, 1, 64])("answers like plain lists, written and read each time (%i)", (slice) => {
    check(
      fc.property(fc.array(ledgerStep, { minLength: 20, maxLength: 80 }), (steps) => {
        const plain = new PlainState(KEY);
        const token = { last: 0 };
        let text: string | null = null;
        const tokens: number[] = [];
        const at = { us: 1_000_000, wallUs: 5_000_000 };
        for (const { pauseUs, wallJumpUs, unreachable, ...step } of steps) {
          at.us += pauseUs;
          at.wallUs += pauseUs + wallJumpUs;
          const command = commandOf({ pauseUs, wallJumpUs, unreachable, ...step }, at.us, tokens);
          const document = new NameDocument(KEY, text, token, at);
          const expected = outcome(plain, command, at, { slice, unreachable });
          const got = outcome(document, command, at, { slice, unreachable });
          if (!isDeepStrictEqual(got, expected)) expect(got).toEqual(expected);
          text = document.toText();
          expect(text === null).toBe(plain.isEmpty);
          expect(new NameDocument(KEY, text, token, at).toText()).toBe(text);
          if (expected.reply.type === "granted") tokens.push(expected.reply.token);
        }
      }),
      150,
    );
  });

  it("keeps the largest numbers exact, and every character", () => {
    const document = new NameDocument(KEY, null, { last: 0 }, AT);
    const request = { mode: "shared", weight: NO_LIMIT, limit: NO_LIMIT, span: 1_024 } as const;
    const ids = { owner: 'a "\u0000\n\u2028', client: "\\ü😀" };
    const times = { ttlUs: NO_LIMIT, grantedUs: 1, expiryUs: NO_LIMIT };
    const rest = { meta: '{"text":"\\n"}', token: NO_LIMIT, confirmed: false };
    const holder = { ...request, ...ids, ...times, ...rest };
    document.putHolder(holder);
    document.putTombstone({ owner: ids.owner, untilUs: NO_LIMIT, reason: "" });
    document.putTombstone({ owner: "b", untilUs: 0, reason: null });
    const copy = new NameDocument(KEY, document.toText(), { last: 0 }, AT);
    expect([...copy.holders()]).toEqual([holder]);
    expect(copy.tombstone(ids.owner, 1)).toMatchObject({ untilUs: NO_LIMIT, reason: "" });
    expect(copy.toText()).toBe(document.toText());
  });

  it("keeps only an unexpired mark when the clock starts again, by the wall clock", () => {
    const text = writtenByLedger();
    const document = new NameDocument(KEY, text, { last: 0 }, AT);
    document.putMark({ token: 7, untilUs: AT.us + 500, meta: "{}" });
    const marked = document.toText();
    const moved = (wallUs: number): NameDocument => {
      const later = { us: 3, wallUs };
      const restarted = new NameDocument(KEY, marked, { last: 0 }, later);
      restarted.startClock(later);
      return restarted;
    };
    expect(moved(AT.wallUs + 499).mark()).toMatchObject({ token: 7, untilUs: 4 });
    expect(moved(AT.wallUs + 499).occupancy().count + moved(AT.wallUs + 499).waiting()).toBe(0);
    expect(moved(AT.wallUs + 500).toText()).toBe(null);
  });

  it("dates a mark by the wall clock of the transaction that makes it", () => {
    const document = new NameDocument(KEY, null, { last: 0 }, AT);
    const later = { us: AT.us + 10, wallUs: AT.wallUs + 1_000 };
    document.startTransaction(later);
    document.putMark({ token: 7, untilUs: later.us + 500, meta: "{}" });
    const after = { us: 3, wallUs: later.wallUs + 499 };
    document.startClock(after);
    expect(document.mark()).toMatchObject({ token: 7, untilUs: 4 });
  });

  it("refuses a text with any value replaced, or reads it as a state that writes itself", () => {
    const text = writtenByLedger();
    const values = [null, -1, 1.5, 1e300, "x", true, [], {}, [[]]];
    let refusals = 0;
    for (let index = 0; index < leafCount(JSON.parse(text)); index += 1) {
      for (const value of values) {
        const spoilt = JSON.stringify(withLeaf(JSON.parse(text), index, value));
        try {
          const read = new NameDocument(KEY, spoilt, { last: 0 }, AT);
          expect(read.toText()).toBe(spoilt);
        } catch {
          refusals += 1;
        }
      }
    }
    expect(refusals).toBeGreaterThan(100);
  });

  it.each([
    "",
    "no JSON",
    "7",
    "{}",
    "[]",
    "[[],[],[],[]]",
    "[[],[],[],[],{}]",
    '[[],[],[["c",1,1,false]],[],null]',
    '[[],[],[],[["o",1,null],["o",1,null]],null]',
  ])("refuses %j", (text) => {
    expect(() => new NameDocument(KEY, text, { last: 0 }, AT)).toThrow();
  });
});

function enqueue(document: NameDocument, index: number): void {
  const request = { mode: "exclusive", weight: 1, limit: NO_LIMIT, span: 1, meta: "{}" } as const;
  const times = { ttlUs: 10_000, offerUs: 1_000, sinceUs: AT.us };
  const ids = { owner: `owner-${index}`, client: `client-${index}` };
  document.enqueue({ ...request, ...times, ...ids }, { heartbeatUs: 5, goneUs: AT.us + 15 });
}

/** A text with a holder, a waiter and a tombstone. */
function writtenByLedger(): string {
  const document = new NameDocument(KEY, null, { last: 0 }, AT);
  const request = { mode: "exclusive", weight: 1, limit: NO_LIMIT, span: 1, meta: "{}" } as const;
  const times = { ttlUs: 10_000, grantedUs: AT.us, expiryUs: AT.us + 10_000 };
  const grant = { owner: "o", client: "c", token: 5, confirmed: true };
  document.putHolder({ ...request, ...times, ...grant });
  enqueue(document, 0);
  document.putTombstone({ owner: "t", untilUs: AT.us + 5, reason: "because" });
  document.putMark({ token: 5, untilUs: AT.us + 5, meta: "{}" });
  return document.toText() as string;
}

function leafCount(value: unknown): number {
  if (!Array.isArray(value)) return 1;
  return value.reduce<number>((sum, part) => sum + leafCount(part), 0);
}

/** The same lists with another value in place of the leaf with this index. */
function withLeaf(value: unknown, index: number, replacement: unknown): unknown {
  if (!Array.isArray(value)) return index === 0 ? replacement : value;
  let before = 0;
  return value.map((part) => {
    const position = index - before;
    const count = leafCount(part);
    before += count;
    return position >= 0 && position < count ? withLeaf(part, position, replacement) : part;
  });
}
