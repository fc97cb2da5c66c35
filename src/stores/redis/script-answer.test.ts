import { describe, expect, it } from "vitest";
import { Unreadable } from "../../events/foreign-data.js";
import type { Acquire, Command, Reply } from "../../rules/ledger-command.js";
import { ScriptAnswer } from "./script-answer.js";

const NOW_US = 1_790_000_000_000_000;
const acquire = { type: "acquire", key: "l:x", span: 4, ttlUs: 1_000 } as Acquire;
const release: Command = { type: "release", key: "l:x", owner: "o", tombstoneUs: 0, keep: null };

const read = (commands: readonly Command[], raw: unknown, tellsRun = false): readonly Reply[] => {
  const answer = new ScriptAnswer(commands, raw, tellsRun);
  expect(answer.nowUs).toBe(NOW_US);
  expect(answer.run).toBe(tellsRun ? "abc" : "");
  return commands.map((_, at) => answer.reply(at));
};
const tokens = (replies: readonly Reply[]): unknown[] =>
  replies.map((reply) => (reply.type === "granted" ? reply.token - NOW_US : reply.type));

describe("an answer of the script", () => {
  it("to a lone command may be the time alone", () => {
    expect(tokens(read([acquire], `${NOW_US}`))).toEqual([0]);
    expect(read([release], `${NOW_US}`)).toMatchObject([{ type: "released", held: true }]);
    expect(tokens(read([acquire], [`${NOW_US}`, "G", "abc"], true))).toEqual([0]);
  });

  it("has the tokens of grants that follow each other", () => {
    const three = [acquire, acquire, acquire];
    expect(tokens(read(three, [`${NOW_US}`, "GGG"]))).toEqual([0, 4, 8]);
    const replies = ["G", `G${NOW_US + 90}`, "G"];
    expect(tokens(read(three, [`${NOW_US}`, ...replies]))).toEqual([0, 90, 94]);
    // A grant of an earlier request does not count.
    const repeated = ["G", `g${NOW_US + 70} 4 1000`, "G"];
    expect(tokens(read(three, [`${NOW_US}`, ...repeated]))).toEqual([0, 70, 4]);
  });

  it("has one text for replies of one letter, with the run and without", () => {
    const mixed = [acquire, release];
    const expected = [0, "released"];
    expect(tokens(read(mixed, [`${NOW_US}`, "GR"]))).toEqual(expected);
    expect(tokens(read(mixed, [`${NOW_US}`, "GR", "abc"], true))).toEqual(expected);
    expect(tokens(read(mixed, [`${NOW_US}`, "G", "R"]))).toEqual(expected);
    expect(tokens(read(mixed, [`${NOW_US}`, "G", "R", "abc"], true))).toEqual(expected);
  });

  it.each([["GG"], ["G"], [""], [7], [null], ["GGGG"], [["G", "G", "G"]]])(
    "with %j for three commands never grants more than it says",
    (letters) => {
      const answer = new ScriptAnswer([acquire, acquire, acquire], [`${NOW_US}`, letters], false);
      const granted = [0, 1, 2].filter((at) => {
        try {
          return answer.reply(at).type === "granted";
        } catch (error) {
          expect(error).toBeInstanceOf(Unreadable);
          return false;
        }
      });
      const said = typeof letters === "string" ? Math.min(3, letters.length) : 0;
      expect(granted).toHaveLength(said);
    },
  );

  it.each([[[]], [["x", "G"]], [null], [["-1", "G"]], [{}]])(
    "without a time is refused: %j",
    (raw) => {
      expect(() => new ScriptAnswer([acquire], raw, false)).toThrow(Unreadable);
    },
  );

  it("to several commands is not the time alone", () => {
    const answer = new ScriptAnswer([acquire, acquire], `${NOW_US}`, false);
    for (const at of [0, 1]) expect(() => answer.reply(at)).toThrow(Unreadable);
  });
});
