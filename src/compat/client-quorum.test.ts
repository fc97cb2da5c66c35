import { describe, expect, it, vi } from "vitest";
import { scriptOf } from "../stores/redis-client/plain-keys.js";
import { ClientQuorum, type Question } from "./client-quorum.js";

const REFUSED = new Error("refused");
const script = scriptOf("return 1");

/** A client with scripted answers; null for one that never answers. */
function client(answer: number | string | readonly unknown[] | Error | null) {
  const evalsha = (): Promise<unknown> => {
    if (answer === null) return new Promise(() => {});
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
  };
  return { evalsha, eval: evalsha };
}

type Client = ReturnType<typeof client>;

function question(limitMs = 30_000): Question<Client> {
  const judge = (count: number): Error | null => (count === 1 ? null : REFUSED);
  return { script, keys: ["a"], args: [], limitMs, judge };
}

const ask = (answers: readonly Parameters<typeof client>[0][], limitMs?: number) =>
  new ClientQuorum(answers.map(client)).ask(question(limitMs));

describe("a majority", () => {
  it("decides without the servers that are silent", async () => {
    expect(await ask([1, 1, null])).toMatchObject({ isCarried: true, isRefused: false });
    expect(await ask([0, 0, null])).toMatchObject({ isCarried: false, isRefused: true });
    expect(await ask([1, "1", null]), "numbers as texts").toMatchObject({ isCarried: true });
  });

  it("of two servers is both: a split is decided", async () => {
    expect(await ask([1, 0])).toMatchObject({ isCarried: false, isRefused: true });
  });

  it("that failed is no refusal: the servers may have done it", async () => {
    const lost = new Error("connection lost");
    const answers = await ask([lost, lost, 0]);
    expect(answers).toMatchObject({ isCarried: false, isRefused: false });
    expect((await answers.votes).votesAgainst.size).toBe(3);
    expect(answers.doubtful.size).toBe(2);
  });
});

describe("a server", () => {
  it("that is silent for too long counts as doubtful", async () => {
    const answers = await ask([null], 20);
    expect(answers).toMatchObject({ isCarried: false, isRefused: false });
    const [error] = (await answers.votes).votesAgainst.values();
    expect(error?.name).toBe("TimeLimitError");
  });

  it("that answers with something else than a number did not do it", async () => {
    const answers = await ask(["OK"]);
    expect(answers).toMatchObject({ isCarried: false, isRefused: false });
  });

  it.each([
    ["of whole numbers", ["1700000000", "5"], 1_700_000_000_000_005n],
    ["that is no number", ["soon", "5"], undefined],
    ["with a part of a number", ["1700000000", "0.5"], undefined],
    ["that is not complete", ["1700000000"], undefined],
  ])("that answers with a time %s did it", async (_title, time, token) => {
    expect(await ask([[1, ...time]])).toMatchObject({ isCarried: true, token });
  });

  it("that does not know the script gets its text", async () => {
    const evaluate = vi.fn(async () => 1);
    const evalsha = () => Promise.reject(new Error("NOSCRIPT No matching script."));
    const quorum = new ClientQuorum([{ evalsha, eval: evaluate }]);
    expect(await quorum.ask(question() as never)).toMatchObject({ isCarried: true });
    expect(evaluate).toHaveBeenCalledWith("return 1", "1", "a");
  });

  it("may be asked by a client that answers to a callback", async () => {
    const evalsha = (...args: unknown[]) =>
      (args.at(-1) as (error: null, answer: number) => void)(null, 1);
    const old = { internal_send_command: () => {}, evalsha, eval: evalsha };
    expect(await new ClientQuorum([old]).ask(question() as never)).toMatchObject({
      isCarried: true,
    });
  });
});

it("tells each reason, and whether the server refused", async () => {
  const lost = new Error("lost");
  const onAgainst = vi.fn();
  const quorum = new ClientQuorum([client(0), client(lost), client(1)], onAgainst);
  await (await quorum.ask(question())).votes;
  expect(onAgainst.mock.calls).toEqual(
    expect.arrayContaining([
      [REFUSED, true],
      [lost, false],
    ]),
  );
});

it("refuses a value that is no client", () => {
  expect(() => new ClientQuorum([{}])).toThrow(/eval and evalsha/);
});
