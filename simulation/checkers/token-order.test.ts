import { describe, expect, it } from "vitest";
import type { Happening } from "../history.js";
import { Story } from "./story.js";
import { checkTokenOrder } from "./token-order.js";

const messages = (story: Story): string[] =>
  checkTokenOrder(story.entries).map(({ message }) => message);

describe("tokens", () => {
  it("rise with every grant of the store", () => {
    const story = new Story().at(0).grants("p/0", 10n).at(1).grants("q/0", 10n);
    expect(messages(story)).toEqual(['the store gave 10 for "a" after 10']);
  });

  it("rise above the whole span of the grant before", () => {
    const story = new Story().at(0).grants("p/0", 10n, { span: 3 });
    expect(messages(story.at(1).grants("q/0", 12n))).toHaveLength(1);
  });

  it("rise for a program that asks after another had one", () => {
    const story = new Story().at(0).asks("p/0").grants("q/0", 10n).grants("p/0", 20n);
    story.at(1).takes("p/0", 20n, 9).at(2).asks("q/0").at(3).takes("q/0", 10n, 9);
    expect(messages(story)).toEqual(['q/0 asked for "a" after p/0 had 20, and got 10']);
  });

  it("are not shared, and not made up", () => {
    const story = new Story().at(0).asks("p/0").asks("p/1").grants("p/0", 10n);
    story.at(1).takes("p/0", 10n, 9).takes("p/1", 10n, 9);
    expect(messages(story)).toEqual(["p/1 and p/0 share the token 10"]);
    const madeUp = new Story().at(0).asks("p/0").takes("p/0", 11n, 9);
    expect(messages(madeUp)).toEqual(['p/0 holds "a" with 11, which the store never gave']);
  });

  it("belong to their names", () => {
    const story = new Story().at(0).grants("p/0", 10n).at(1).grants("q/0", 5n, { name: "b" });
    expect(messages(story)).toEqual([]);
  });
});

describe("a store that forgot", () => {
  const again = (clockUs: number): Story => {
    const story = new Story().at(0).asks("p/0").holds("p/0", 10n, 9).asks("q/0");
    return story.at(1).happens({ type: "forgot" }).at(2).grants("q/0", 5n, { clockUs });
  };

  it("goes on from its clock", () => {
    expect(messages(again(11))).toHaveLength(1);
    expect(messages(again(10))).toEqual([]);
  });

  it("goes on from its last token where it forgot before that", () => {
    const story = new Story().at(0).happens({ type: "forgot" }).at(1).grants("p/0", 10n);
    expect(messages(story.at(2).grants("q/0", 5n, { clockUs: 5 }))).toHaveLength(1);
  });

  it("may give a lower token to a process that has seen no higher one", () => {
    const story = again(5).at(3).asks("q/1").at(4).takes("q/1", 5n, 9);
    expect(messages(story)).toEqual([]);
    const ahead = again(11).at(3).asks("q/1").at(4).takes("q/1", 5n, 9);
    expect(messages(ahead)).toHaveLength(2);
  });

  it("learns from a process that has seen a higher token", () => {
    const story = again(5).at(3).asks("p/1").at(4).takes("p/1", 5n, 9);
    expect(messages(story)).toEqual(['p/1 asked for "a" after p/0 had 10, and got 5']);
  });
});

describe("turns", () => {
  const turns = (faults: Happening[]): Story => {
    const story = new Story().at(0).grants("p/0", 10n, { span: 3 }).at(1);
    for (const happening of faults) story.happens(happening);
    story.at(2).grants("q/0", 20n).asks("q/0").takes("q/0", 20n, 9);
    return story.at(3).asks("p/1").at(4).takes("p/1", 11n, 9);
  };

  it("are not taken on a grant after another was made", () => {
    expect(messages(turns([]))).toEqual(['p/1 asked for "a" after q/0 had 20, and got 11']);
  });

  it.each<Happening>([
    { type: "forgot" },
    { type: "revoked", name: "a", token: 10n },
    { type: "stepped", byMs: 5_000 },
  ])("are excused until the process is told that its grant has ended: $type", (happening) => {
    expect(messages(turns([happening]))).toEqual([]);
    const told = { type: "told", process: "p", name: "a", owner: "p/0", saidMs: 1 } as const;
    expect(messages(turns([happening, { ...told, process: "q" }]))).toEqual([]);
    expect(messages(turns([happening, told]))).toHaveLength(1);
  });

  it("are excused by the jump of one node of several only if the node had voted for them", () => {
    const stepped = (...owners: string[]) => ({ type: "stepped", byMs: 5_000, owners }) as const;
    expect(messages(turns([stepped("p/0")]))).toEqual([]);
    expect(messages(turns([stepped("q/0")]))).toHaveLength(1);
  });

  it("are not excused by a jump that is shorter than the time since the other grant", () => {
    expect(messages(turns([{ type: "stepped", byMs: 2 }]))).toEqual([]);
    expect(messages(turns([{ type: "stepped", byMs: 1 }]))).toHaveLength(1);
    expect(messages(turns([{ type: "stepped", byMs: -5_000 }]))).toHaveLength(1);
  });

  it.each<Happening>([
    { type: "forgot" },
    { type: "revoked", name: "a", token: 10n },
    { type: "stepped", byMs: 5_000 },
  ])("are not excused by a fault before the store last renewed the grant: $type", (happening) => {
    const story = turns([happening]).at(1.5).extends(10n);
    expect(messages(story)).toHaveLength(1);
  });

  it.each<Happening>([
    { type: "forgot" },
    { type: "revoked", name: "a", token: 10n },
    { type: "stepped", byMs: 5_000 },
  ])("are not excused if the store renewed the grant beside the other one: $type", (happening) => {
    expect(messages(turns([happening]).at(2.5).extends(10n))).toHaveLength(1);
  });

  it.each<Happening>([
    { type: "forgot" },
    { type: "revoked", name: "a", token: 10n },
    { type: "stepped", byMs: 5_000 },
  ])("are not excused by a fault after the other grant: $type", (happening) => {
    expect(messages(turns([]).at(2.5).happens(happening))).toHaveLength(1);
  });
});
