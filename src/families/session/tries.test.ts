import { beforeEach, expect, it } from "vitest";
import { claimOf } from "../../../test/fixtures/ledger-server.js";
import { ManualRuntime, settled } from "../../../test/fixtures/manual-runtime.js";
import { watch } from "../../../test/fixtures/outcome.js";
import type { Busy, Claim } from "../../contract/store.js";
import type { SessionGrant } from "./session-grant.js";
import { Tries } from "./tries.js";

type Result = SessionGrant | Busy;

interface Asked {
  readonly claim: Claim;
  readonly answer: (result: Result) => void;
  readonly fail: (error: Error) => void;
}

const FREE: Busy = { type: "busy", holder: null, mark: null };
const down = new Error("down");
let runtime: ManualRuntime;
let asked: Asked[];
let tries: Tries;

beforeEach(() => {
  runtime = new ManualRuntime();
  asked = [];
  tries = new Tries(runtime.clock, (claim) => {
    return new Promise((answer, fail) => asked.push({ claim, answer, fail }));
  });
});

const ask = (owner: string, given: Partial<Claim> = {}) =>
  watch(tries.acquire(claimOf(owner, { name: "m", storeTimeoutMs: 1_000, ...given })));

function grantOf({ claim }: Asked): SessionGrant {
  const entry = { lock: claim, claim, id: "e7", text: "", token: 7n, isWithdrawn: false };
  return { type: "granted", entry, token: 7n } as unknown as SessionGrant;
}

it("are sent one at a time, and those that came meanwhile share the next request", async () => {
  const first = ask("a");
  const others = Array.from({ length: 999 }, (_, index) => ask(`b${index}`));
  await settled();
  expect(asked).toHaveLength(1);
  asked[0]?.answer(FREE);
  await settled();
  expect(first.value).toBe(FREE);
  expect(asked.map(({ claim }) => claim.owner)).toEqual(["a", "b0"]);
  const busy: Busy = { ...FREE };
  asked[1]?.answer(busy);
  await settled();
  for (const { value } of others) expect(value).toBe(busy);
  ask("c");
  expect(asked).toHaveLength(3);
});

it("give the lock to one of those that share a request, and name it to the others", async () => {
  ask("a");
  const [b, c] = [ask("b"), ask("c")];
  asked[0]?.answer(FREE);
  await settled();
  const grant = grantOf(asked[1] as Asked);
  asked[1]?.answer(grant);
  await settled();
  expect(b.value).toBe(grant);
  expect(c.value).toMatchObject({ type: "busy", holder: { token: 7n }, mark: null });
});

it("never join a request that was sent before they began", async () => {
  ask("a");
  const b = ask("b");
  asked[0]?.answer(FREE);
  await settled();
  const c = ask("c");
  asked[1]?.answer(FREE);
  await settled();
  expect(b.value).toBe(FREE);
  expect(c.state).toBe("pending");
  expect(asked[2]?.claim.owner).toBe("c");
});

it("have a line for each name, space and time limit", () => {
  ask("a");
  ask("b", { name: "n" });
  ask("c", { space: "once" });
  ask("d", { storeTimeoutMs: 50 });
  expect(asked).toHaveLength(4);
});

it("fail together, and those behind ask again", async () => {
  const [a, b, c] = [ask("a"), ask("b"), ask("c")];
  asked[0]?.fail(down);
  await settled();
  expect(a.error).toBe(down);
  asked[1]?.fail(down);
  await settled();
  expect([b.error, c.error]).toEqual([down, down]);
});

it("are not sent when the callers have given up", async () => {
  ask("a");
  const b = ask("b");
  await runtime.advance(1_000);
  asked[0]?.fail(down);
  await settled();
  expect(String(b.error)).toContain("The store was silent for 1000 ms. down");
  expect(asked).toHaveLength(1);
});
