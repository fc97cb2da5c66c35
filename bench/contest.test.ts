import { describe, expect, it } from "vitest";
import { choose } from "./choice.js";
import { contend, contested, startForked } from "./contention.js";
import { bestOf, type Contestant, contest, inOrder, type Question } from "./contest.js";
import { atLeast, atMost } from "./goals.js";
import { page } from "./page.js";
import type { Result } from "./results.js";
import { summary } from "./summary.js";
import { goalLines, table } from "./table.js";

const CONTENDER = new URL("../test/fixtures/bench-contender.mjs", import.meta.url);
const TURNS = { lock: "m", workers: 1, forMs: 10, holdMs: [] };

function ask(more: Partial<Question> & Pick<Question, "contestants">): Question {
  const words = { store: "planted", name: "one", title: "a question", about: "Nothing." };
  return { ...words, unit: "ms", better: "lower", rounds: 3, goals: () => [], ...more };
}

function always(name: string, role: Contestant["role"], value: number): Contestant {
  return { name, role, round: async () => ({ value }) };
}

/** Each process tells holds of its own: the fixture takes no lock at all. */
function planted(name: string, isExclusive: boolean): Contestant {
  const order = { ...TURNS, isExclusive };
  return {
    name,
    role: "peer",
    round: async () => contested(await contend(order, 2, startForked(CONTENDER, order))),
  };
}

function resultOf(question: Question, standings: Result["standings"]): Result {
  const goals = [{ text: "at most 2", value: 1, isMet: true }];
  const facts = { isQuick: false, takenAt: "2026-01-01", machine: {}, versions: {} };
  return { question, standings, goals, ...facts };
}

describe("a contest", () => {
  it("has no figures for who let two hold the lock at once", async () => {
    const question = ask({
      contestants: async () => [planted("no lock", false), planted("a lock", true)],
    });
    const standings = await contest(question, { isQuick: true }, () => {});
    expect(standings.map(({ failure }) => failure)).toEqual([
      "two held the lock at the same time",
      null,
    ]);
    expect(bestOf("peer", "lower", standings).name).toBe("a lock");
    const text = table(question, standings);
    expect(text).toMatch(/^no lock +failed: two held the lock at the same time$/m);
  });

  it("goes on without who fails, and asks it no more", async () => {
    let rounds = 0;
    const failing: Contestant = {
      name: "failing",
      role: "holdfast",
      round: async () => {
        rounds += 1;
        if (rounds === 2) throw new Error("the server is gone");
        return { value: 1 };
      },
    };
    const question = ask({ contestants: async () => [failing, always("steady", "floor", 4)] });
    const [first, second] = await contest(question, { isQuick: false }, () => {});
    expect(first).toMatchObject({ failure: "the server is gone" });
    expect(rounds).toBe(2);
    expect(second).toMatchObject({ failure: null, median: 4, spread: 0 });
    expect(second?.samples).toHaveLength(3);
    const value = bestOf("holdfast", "lower", first ? [first] : []).median;
    const text = goalLines([{ text: "at most 2", value, isMet: value <= 2 }]);
    expect(text).toBe("MISSED  at most 2: no figure");
  });

  it("skips a contestant that cannot take part, and says why", async () => {
    const skipped: Contestant = {
      name: "in another language",
      role: "foreign",
      skipped: "no compiler",
      round: () => Promise.reject(new Error("asked all the same")),
    };
    const question = ask({ contestants: async () => [always("a", "peer", 1), skipped] });
    const standings = await contest(question, { isQuick: true }, () => {});
    expect(table(question, standings)).toMatch(/^in another language +skipped: no compiler$/m);
    expect(page([resultOf(question, standings)])).toContain("| skipped: no compiler |");
  });

  it("compares a lock in another language with the raw commands of that language", async () => {
    const question = ask({
      contestants: async () => [
        always("holdfast", "holdfast", 3),
        always("raw", "floor", 2),
        always("raw (Go)", "foreign floor", 8),
        { ...always("a lock (Go)", "foreign", 10), floor: "raw (Go)" },
      ],
    });
    const standings = await contest(question, { isQuick: true }, () => {});
    expect(table(question, standings)).toMatch(/^a lock \(Go\) +10 +0 % +1\.25 /m);
    const text = page([resultOf(question, standings)]);
    expect(text).toContain("| a lock (Go) | 10 | 0 % | 1.25 |");
    const [, languages] = text.split("## Other languages");
    expect(languages).toContain("| planted, a question | a lock (Go) | 10 ms | 1.25 |");
    expect(languages).toContain("| planted, a question | holdfast | 3 ms | 1.50 |");
  });

  it("judges Holdfast by its defaults, under the condition of the best peer", async () => {
    const question = ask({
      contestants: async () => [
        always("holdfast, 1 client", "holdfast", 1),
        always("holdfast strict, 5 clients", "holdfast", 9),
        always("holdfast, 5 clients", "holdfast", 3),
        always("a lock, 5 clients", "peer", 6),
      ],
    });
    const standings = await contest(question, { isQuick: true }, () => {});
    const text = page([resultOf(question, standings)]);
    expect(text).toContain("Holdfast is ahead (holdfast, 5 clients: 3, a lock, 5 clients: 6 ms).");
    const [, ahead = ""] = text.split("## Where another package is ahead");
    expect(ahead).toContain(
      "a question**: a lock, 5 clients: 6 ms; holdfast strict, 5 clients: 9.",
    );
  });

  it("closes its servers when a contestant cannot even start", async () => {
    let closed = 0;
    const question = ask({
      contestants: () => Promise.reject(new Error("no server")),
      close: async () => {
        closed += 1;
      },
    });
    await expect(contest(question, { isQuick: true }, () => {})).rejects.toThrow("no server");
    expect(closed).toBe(1);
  });

  it("shows its progress, and leaves the first round out", async () => {
    const seen: string[] = [];
    let round = 0;
    const warming: Contestant = {
      name: "a",
      role: "peer",
      round: async () => ({ value: round++ === 0 ? 1_000 : 1 }),
    };
    const standings = await contest(
      ask({ contestants: async () => [warming] }),
      { isQuick: false },
      (text) => seen.push(text),
    );
    expect(standings[0]?.median).toBe(1);
    expect(seen).toEqual(["warming up a", ...[1, 2, 3].map((at) => `round ${at} of 3: a`)]);
  });
});

describe("a choice", () => {
  const contestants = async (): Promise<Contestant[]> => [];
  const all = [
    ask({ store: "redis", name: "handoff", contestants }),
    ask({ store: "redis", name: "crash", takesLong: true, contestants }),
    ask({ store: "redis", name: "million", isOnDemand: true, contestants }),
    ask({ store: "file", name: "start-up", contestants }),
  ];
  const names = (words: readonly string[]): unknown => {
    const choice = choose(words, all);
    if (typeof choice === "string") return choice;
    return choice.questions.map(({ store, name }) => `${store} ${name}`);
  };

  it("is of all, a store, or a question", () => {
    expect(names([])).toEqual(["redis handoff", "redis crash", "file start-up"]);
    expect(names(["redis"])).toEqual(["redis handoff", "redis crash"]);
    expect(names(["redis", "handoff"])).toEqual(["redis handoff"]);
  });

  it("leaves what takes long out of a quick look, unless it is named", () => {
    expect(names(["--quick"])).toEqual(["redis handoff", "file start-up"]);
    const leftOut = [{ name: "crash" }, { name: "million" }];
    expect(choose(["--quick"], all)).toMatchObject({ leftOut });
    expect(names(["crash", "--quick"])).toEqual(["redis crash"]);
  });

  it("leaves nothing out with --all", () => {
    const everything = all.map(({ store, name }) => `${store} ${name}`);
    expect(names(["--all"])).toEqual(everything);
    expect(names(["--all", "--quick"])).toEqual(everything);
  });

  it.each([
    [["memcached"], 'There is no benchmark "memcached".'],
    [["file", "handoff"], 'There is no benchmark "file handoff".'],
    [["--fast"], "There is no option --fast."],
  ])("of %j is refused, and what there is is told", (words, problem) => {
    const text = choose(words, all);
    expect(text).toContain(problem);
    expect(text).toMatch(/^ {2}redis +handoff, crash, million$/m);
    expect(text).toContain("--quick");
  });
});

describe("a goal", () => {
  const of = async (value: number, cpu: number) => {
    const round = async () => ({ value, more: { cpu } });
    const contestants = async () => [{ name: "a", role: "peer" as const, round }];
    const [one] = await contest(ask({ contestants }), { isQuick: true }, () => {});
    return one as Result["standings"][number];
  };

  it("is a ratio of one run, of the compared figures or of another column", async () => {
    const [ours, other] = [await of(12, 30), await of(10, 10)];
    expect(atMost(1.2, "it", ours, other)).toEqual({
      text: "at most 1.2 × it",
      value: 1.2,
      isMet: true,
    });
    expect(atMost(1.1, "it", ours, other).isMet).toBe(false);
    expect(atLeast(1.3, "it", ours, other).isMet).toBe(false);
    const ofCpu = { text: "at least 3 × its CPU", value: 3, isMet: true };
    expect(atLeast(3, "its CPU", ours, other, "cpu")).toEqual(ofCpu);
    expect(atMost(3, "no figure", ours, other, "memory")).toMatchObject({ isMet: false });
  });
});

describe("a picture", () => {
  const standings = (values: readonly number[]) =>
    contest(
      ask({
        contestants: async () => [
          always("holdfast", "holdfast", values[0] ?? 0),
          always("a <peer> & more", "peer", values[1] ?? 0),
        ],
      }),
      { isQuick: true },
      () => {},
    );
  const question = ask({ contestants: async () => [] });

  it("stays within its frame, and escapes names", async () => {
    const one = { ...question, store: "a <store> & more" };
    const picture = summary([resultOf(one, await standings([1, 200]))]);
    expect(picture).toContain("a &lt;store&gt; &amp; more");
    const dots = [...picture.matchAll(/<circle class="\w+" cx="([\d.]+)"/g)];
    expect(dots.length).toBeGreaterThan(2);
    for (const [, x] of dots) expect(Number(x)).toBeLessThan(700);
  });

  it("has a legend that stays within its frame", async () => {
    const picture = summary([resultOf(question, await standings([1, 2]))]);
    const meanings = [...picture.matchAll(/<text class="note" x="([\d.]+)" y="63">([^<]*)</g)];
    expect(meanings.length).toBe(4);
    for (const [, x, meaning = ""] of meanings) {
      expect(Number(x) + meaning.length * 7).toBeLessThan(760);
    }
  });

  it("sums up all questions that have peers, with those where Holdfast is behind", async () => {
    const ours = await standings([1, 2]);
    const theirs = await standings([4, 2]);
    const picture = summary([resultOf(question, ours), resultOf(question, theirs)]);
    expect(picture).toContain("level or ahead in 1 of 2");
    expect(picture).toContain(">2.0 ×<");
    expect(picture).toContain(">0.50 ×<");
  });
});

it("lets each contestant come once in a round, behind others in other rounds", () => {
  for (const count of [1, 2, 3, 9, 18]) {
    const all = Array.from({ length: count }, (_, at) => at);
    const orders = Array.from({ length: 15 }, (_, round) => inOrder(all, round));
    for (const order of orders) expect([...order].sort((a, b) => a - b)).toEqual(all);
    const before = new Set(orders.map((order) => order[order.indexOf(0) - 1]));
    if (count > 3) expect(before.size).toBeGreaterThan(3);
  }
});
