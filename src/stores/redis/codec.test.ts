import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isFull } from "../../../test/fixtures/depth.js";
import { SEED } from "../../../test/fixtures/seed.js";
import { NO_LIMIT } from "../../rules/fits.js";
import type { Command } from "../../rules/ledger-command.js";
import { callsOf, decode, decodePush, Encoder } from "./codec.js";

const NOW_US = 1_790_000_000_000_000;
const key = "l:x";
const acquire: Command = {
  type: "acquire",
  key,
  owner: "o",
  client: "c",
  mode: "exclusive",
  weight: 1,
  limit: NO_LIMIT,
  ttlUs: 30_000_000,
  span: 1,
  meta: "{}",
  enqueue: true,
  offerUs: 5_000_000,
  heartbeatUs: 5_000_000,
  notAfterUs: NOW_US,
  seenToken: 0,
};
const renew: Command = { type: "renew", key, owner: "o", ttlUs: 1, notAfterUs: 1, seenToken: 0 };
const digits = (value: number): string => `${value}`.padStart(16, "0");
const times = digits(NOW_US - 5) + digits(NOW_US - 5) + digits(NOW_US + 9);
const request = (span: string): string => digits(30_000_000) + span + digits(1) + digits(2);
const holder = `O${times}${request("0007")}eowner client 1 9007199254740991 {"a":1}`;
const lean = `H${times}${request("0001")}xowner client {"a":1}`;
const waiter = `${digits(NOW_US - 3)}${request("0001")}sowner client 3 4 {}`;
const encode = (commands: readonly Command[]): string[] => new Encoder("@").encode(commands);

/** Each command with a reply to it, as the script sends them. */
const REPLIES: readonly (readonly [Command, unknown])[] = [
  [acquire, "G"],
  [acquire, `G${NOW_US + 7}`],
  [acquire, `g${NOW_US} 7 30000000`],
  [acquire, `Q3 ${holder}`],
  [acquire, `Q- ${lean}`],
  [acquire, `B ${holder}`],
  [acquire, `M${NOW_US} 5000 {"a":1}`],
  [acquire, "L"],
  [acquire, "E"],
  [{ type: "confirm", key, owner: "o" }, `n30000000 1 ${NOW_US} 7`],
  [renew, `n30000000 0 ${NOW_US} 1`],
  [renew, `N${NOW_US}0007`],
  [renew, "Ovstuck"],
  [renew, "Om"],
  [{ type: "release", key, owner: "o", tombstoneUs: 0, keep: null }, "R2000000"],
  [{ type: "release", key, owner: "o", tombstoneUs: 0, keep: null }, "r"],
  [{ type: "heartbeat", key, client: "c" }, `T2 1 o ${NOW_US} 7 ${NOW_US - 5} 14 ${holder}`],
  [{ type: "heartbeat", key, client: "c" }, "T0 0"],
  [{ type: "revoke", key, token: 1, reason: "" }, "V1"],
  [{ type: "inspect", key }, [`${NOW_US} 5000 {}`, [holder, lean], [waiter]]],
];
const MESSAGES = [
  `go ${NOW_US} 7 ${NOW_US - 5} 14 l:a name`,
  `m["l:x","o","${NOW_US}","{}"]`,
  `v["l:x","o","${NOW_US}","stuck"]`,
];

const runs = isFull ? 100_000 : 5_000;
/** Prints its seed when it fails. */
const check = <T>(values: fc.Arbitrary<T>, property: (value: T) => void): void =>
  fc.assert(fc.property(values, property), { seed: SEED, numRuns: runs });

/** One to three cuts, changes or insertions. */
const spoiling = fc.array(
  fc.record({
    at: fc.nat(200),
    cut: fc.nat(20),
    put: fc.oneof(fc.string({ maxLength: 4 }), fc.constantFrom("-1", "1e3", "9".repeat(20), " ")),
  }),
  { minLength: 1, maxLength: 3 },
);
const spoil = (text: string, steps: readonly { at: number; cut: number; put: string }[]): string =>
  steps.reduce((left, { at, cut, put }) => {
    const start = at % (left.length + 1);
    return left.slice(0, start) + put + left.slice(start + cut);
  }, text);

/** Every number is exact, whatever the reply was. */
function expectChecked(value: unknown): void {
  if (typeof value === "number") expect(Number.isSafeInteger(value)).toBe(true);
  else if (typeof value === "object" && value !== null) Object.values(value).forEach(expectChecked);
  else expect(value).not.toBeUndefined();
}

const readOrRefuse = (read: () => unknown): void => {
  let value: unknown;
  try {
    value = read();
  } catch (error) {
    expect(error).toBeInstanceOf(Error);
    return;
  }
  expectChecked(value);
};

describe("a batch", () => {
  const alike = (given: object): Command => ({ ...acquire, owner: "p", ...given }) as Command;

  it("says the terms that its commands share once", () => {
    const [first, second, release] = encode([
      acquire,
      alike({}),
      alike({ type: "release", keep: null, tombstoneUs: 0 }),
      alike({}),
    ]);
    expect(first).toContain(`0001${digits(5_000_000)}${digits(5_000_000)}xo @c {}`);
    expect([second, release]).toEqual(['"p ', "p "]);
  });

  it.each(
    Object.entries({ ...acquire, owner: "o", key }).filter(
      ([field]) => !["type", "owner", "key"].includes(field),
    ),
  )("says an acquire with another %s in full", (field, value) => {
    const other = { mode: "shared", enqueue: false }[field] ?? `${value}1`;
    const changed = alike({ [field]: typeof value === "number" ? value - 1 : other });
    expect(encode([acquire, changed])[1]).not.toContain('"p');
  });

  it("says a renewal in full that has another term, or a client that resumed", () => {
    const other = (given: object): Command => ({ ...renew, owner: "p", ...given }) as Command;
    expect(encode([renew, other({})])[1]).toBe('"p ');
    for (const given of [{ ttlUs: 2 }, { notAfterUs: 2 }, { seenToken: 2 }, { resumedBy: "c" }]) {
      expect(encode([renew, other(given)])[1]).toMatch(/^\d/);
    }
    // Only the first renewal is by a client that resumed.
    expect(encode([other({ resumedBy: "c" }), renew])[1]).toMatch(/^\d/);
  });
});

// The scripts rely on it: they do not look at the form of a number again.
describe("a number of a command", () => {
  it("has all its digits, whatever it was", () => {
    const number = fc.oneof(fc.double(), fc.integer(), fc.constantFrom(2 ** 53, 1e300, -0, 0.5));
    const fields = ["ttlUs", "span", "offerUs", "heartbeatUs", "notAfterUs", "seenToken"];
    check(fc.tuple(fc.constantFrom(...fields), number), ([field, value]) => {
      const [first] = encode([{ ...acquire, [field]: value }]);
      expect(first).toMatch(/^[Xpu]\d{84}xo @c \{\}$/);
      const [second] = encode([{ ...renew, [field]: value }]);
      expect(second).toMatch(/^\d{48}o $/);
    });
  });
});

describe("the calls of a batch", () => {
  const of = (type: string, name: string): Command => ({ type, key: name }) as Command;
  const words = (commands: readonly Command[]): string[] =>
    callsOf(commands).map(
      (call) => `${call.verb} ${call.commands.map((one) => one.key).join("")} ${call.places}`,
    );

  it("are one for each verb", () => {
    const mixed = [of("release", "a"), of("acquire", "b"), of("release", "c"), of("confirm", "d")];
    expect(words([...mixed, of("renew", "e")])).toEqual([
      "release ac 0,2",
      "acquire b 1",
      "renew de 3,4",
    ]);
  });

  it("keep the order of the commands on each name", () => {
    const types = ["acquire", "release", "inspect", "heartbeat"];
    const drawn = fc.record({
      type: fc.constantFrom(...types),
      key: fc.constantFrom("a", "b", "c"),
    });
    check(fc.array(drawn, { maxLength: 12 }), (given) => {
      const commands = given as unknown as Command[];
      const placed = callsOf(commands).flatMap((call) => call.places);
      expect([...placed].sort((x, y) => x - y)).toEqual(commands.map((_, at) => at));
      for (const name of ["a", "b", "c"]) {
        const places = placed.filter((at) => commands[at]?.key === name);
        expect(places).toEqual([...places].sort((x, y) => x - y));
      }
    });
  });
});

describe("a reply", () => {
  it("is read as it was sent", () => {
    for (const [command, answered] of REPLIES) expectChecked(decode(command, answered, NOW_US));
  });

  it("that belongs to another command is refused", () => {
    expect(() => decode(renew, "G", NOW_US)).toThrow("a reply to renew");
    expect(() => decode(renew, "R", NOW_US)).toThrow("a reply to renew");
    expect(() => decode(acquire, `n30000000 0 ${NOW_US} 1`, NOW_US)).toThrow("a reply to acquire");
    expect(() => decode({ type: "heartbeat", key, client: "c" }, "V1", NOW_US)).toThrow(
      "to heartbeat",
    );
    expect(() => decode({ type: "inspect", key }, "G", NOW_US)).toThrow("lists");
    expect(() => decode(acquire, ["", [], []], NOW_US)).toThrow("a reply to acquire");
  });

  it.each(["n", "n ", "n1 0 ", "n1 0 1", "n-1 0 1 1", "n1 0 1e3 1", "N", "N1", `N${NOW_US}`])(
    "to a renewal that is cut off is refused, never read as a loss: %s",
    (answered) => {
      expect(() => decode(renew, answered, NOW_US)).toThrow("a whole number");
    },
  );

  it("that is damaged is refused, or has only exact numbers", () => {
    check(fc.tuple(fc.constantFrom(...REPLIES), spoiling), ([[command, answered], steps]) => {
      const spoilt = Array.isArray(answered)
        ? answered.map((part) =>
            Array.isArray(part) ? part.map((one) => spoil(one, steps)) : spoil(part, steps),
          )
        : spoil(String(answered), steps);
      readOrRefuse(() => decode(command, spoilt, NOW_US));
    });
  });

  it("of any other type is refused, or has only exact numbers", () => {
    check(fc.tuple(fc.constantFrom(...REPLIES), fc.anything()), ([[command], answered]) => {
      readOrRefuse(() => decode(command, answered, NOW_US));
    });
  });
});

describe("a message", () => {
  it.each(MESSAGES)("is read as it was sent: %s", (message) => {
    expectChecked(decodePush("c", message));
  });

  it.each(["", "x", "g", "m", "m{}", "v[null]", "v[]", "m[1,2,3,4]", "go 1 2 3"])(
    "that is %j is refused",
    (message) => {
      expect(() => decodePush("c", message)).toThrow();
    },
  );

  it("that is damaged is refused, or has only exact numbers", () => {
    check(fc.tuple(fc.constantFrom(...MESSAGES), spoiling), ([message, steps]) => {
      readOrRefuse(() => decodePush("c", spoil(message, steps)));
    });
  });
});
