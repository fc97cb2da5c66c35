import { expect, it } from "vitest";
import type { Arbiter, Execution } from "../../families/ledger/arbiter.js";
import type { View } from "../../rules/ledger-command.js";
import { networkRuntime } from "../../time/runtime.js";
import type { Driver } from "../redis-client/client.js";
import { Layout } from "./layout.js";
import { Listing } from "./listing.js";
import { RedisScript } from "./redis-script.js";

const NOW_US = 1_789_000_000_000_000;
const HELD: View = {
  type: "view",
  holders: [],
  waiters: [],
  mark: { token: 1, meta: "{}", remainingUs: 1 },
};

/** A listing of a register whose HSCAN gives these answers, and the names that it looks at. */
function listingOf(answers: readonly unknown[]) {
  const calls: string[][] = [];
  const left = [...answers];
  const driver = { isCluster: false, send: async () => left.shift() } as unknown as Driver;
  const layout = new Layout("", false, "", 0);
  const arbiter: Pick<Arbiter, "name" | "runtime" | "execute"> = {
    name: "redis",
    runtime: networkRuntime(),
    execute: (_, commands): Execution => {
      calls.push(commands.map(({ key }) => key));
      return { nowUs: NOW_US, node: "", replies: commands.map(() => HELD) };
    },
  };
  return { listing: new Listing(arbiter, driver, layout, new RedisScript(driver, layout)), calls };
}

async function keysOf(listing: Listing): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of listing.views("")) keys.push(key);
  return keys;
}

it("looks at every name once, at few in a hash of their own with each call", async () => {
  const names = Array.from({ length: 25 }, (_, at) => `l:${String(at).padStart(2, "0")}`);
  const fields = names.flatMap((name) => [name, "F"]);
  const start = `${NOW_US - 60_000_000}`;
  const times = start + start + start + "30000000".padStart(16, "0");
  const over = `H${times}0001${"0".repeat(32)}xowner channel {}`;
  const { listing, calls } = listingOf([
    ["7", ["", "1", ...fields.slice(0, 20), "l:over", over]],
    ["0", [...fields.slice(20), ...fields.slice(0, 4)]],
  ]);
  expect(await keysOf(listing)).toEqual(names);
  expect(calls.map((call) => call.length)).toEqual([0, 10, 10, 5]);
});

it.each([[null], [["0"]], [["0", "fields"]], ["text"]])(
  "an answer to HSCAN that is %j is an error of the store",
  async (answer) => {
    await expect(keysOf(listingOf([answer]).listing)).rejects.toMatchObject({
      code: "HF_STORE",
      message: "Redis failed: expected a list.",
    });
  },
);
