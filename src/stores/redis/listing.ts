import { assert, present } from "../../errors/assert.js";
import { isForeign, list, reportForeign } from "../../events/foreign-data.js";
import type { Arbiter } from "../../families/ledger/arbiter.js";
import type { View } from "../../rules/ledger-command.js";
import { compareNames } from "../../rules/name.js";
import { within } from "../../time/timers.js";
import type { Driver } from "../redis-client/client.js";
import { type Layout, patternOf } from "./layout.js";
import { isOver } from "./records.js";
import type { RedisScript } from "./redis-script.js";

/** A name in the register. */
interface Listed {
  readonly shard: string;
  readonly key: string;
  /** It may have many holders and waiters. */
  readonly hasHash: boolean;
}

/** How many names are looked at together. */
const CHUNK = 100;
/** How many entries of the register one call of HSCAN looks at. */
const SCAN_COUNT = 500;
/** How long each call may take. The channel, which limits all other calls, sends none of these. */
const CALL_MS = 5_000;
/** How many names one call looks at: those in a hash may have many holders and waiters each. */
const MAX_LEAN = 100;
const MAX_HASHES = 10;

/** Lists the names in use, with their holders and waiters. */
export class Listing {
  readonly #arbiter: Pick<Arbiter, "name" | "runtime" | "execute">;
  readonly #driver: Driver;
  readonly #layout: Layout;
  readonly #script: RedisScript;

  constructor(
    arbiter: Pick<Arbiter, "name" | "runtime" | "execute">,
    driver: Driver,
    layout: Layout,
    script: RedisScript,
  ) {
    this.#arbiter = arbiter;
    this.#driver = driver;
    this.#layout = layout;
    this.#script = script;
  }

  async *views(prefix: string): AsyncIterable<{ key: string; view: View }> {
    const found = await Promise.all(this.#layout.shards.map((shard) => this.#names(shard, prefix)));
    const names = found.flat().sort((a, b) => compareNames(a.key, b.key));
    for (let start = 0; start < names.length; start += CHUNK) {
      const chunk = names.slice(start, start + CHUNK);
      const views = new Map<string, View>();
      await Promise.all(callsOf(chunk).map((call) => this.#look(call, views)));
      for (const { key } of chunk) {
        const view = present(views.get(key), "every listed name was looked at");
        if (view.holders.length + view.waiters.length > 0 || view.mark) yield { key, view };
      }
    }
  }

  /** The names in use. A name whose only holder has expired is left out. */
  async #names(shard: string, prefix: string): Promise<Listed[]> {
    const register = this.#layout.registerOf(shard);
    const { nowUs } = await this.#within(this.#arbiter.execute(shard, []));
    const names = new Map<string, Listed>();
    let cursor = "0";
    do {
      const args = [register, cursor, "MATCH", patternOf(prefix), "COUNT", `${SCAN_COUNT}`];
      const answer = this.#driver.send(register, "hscan", args).then(readScan);
      const { next, fields } = await this.#within(answer, register);
      for (let at = 0; at < fields.length; at += 2) {
        const [key, text] = [String(fields[at]), String(fields[at + 1])];
        // The field with the empty name has the last token.
        if (key === "" || isOver(text, nowUs)) continue;
        names.set(key, { shard, key, hasHash: !text.startsWith("H") });
      }
      cursor = next;
    } while (cursor !== "0");
    return [...names.values()];
  }

  async #look(names: readonly Listed[], views: Map<string, View>): Promise<void> {
    const [first] = names;
    const { shard } = present(first, "no call looks at no name");
    const commands = names.map(({ key }) => ({ type: "inspect", key }) as const);
    const { replies } = await this.#within(this.#arbiter.execute(shard, commands));
    for (const [at, { key }] of names.entries()) {
      const reply = present(replies[at], "every command has a reply");
      if (isForeign(reply)) {
        reportForeign(this.#arbiter.name, this.#script.placeOf(key), reply);
        views.set(key, { type: "view", holders: [], waiters: [], mark: null });
        continue;
      }
      if (reply instanceof Error) throw reply;
      assert(reply.type === "view", "an inspect is answered by a view");
      views.set(key, reply);
    }
  }

  #within<T>(answer: T | Promise<T>, register?: string): Promise<T> {
    const limited = within(this.#arbiter.runtime.timers, CALL_MS, Promise.resolve(answer));
    return limited.catch((error: unknown) => {
      throw this.#script.error(error, register);
    });
  }
}

function readScan(answer: unknown): { next: string; fields: readonly unknown[] } {
  const [next, fields] = list(answer);
  return { next: String(next), fields: list(fields) };
}

/** The names that each call looks at: all of one shard, and not too many. */
function callsOf(names: readonly Listed[]): Listed[][] {
  const calls: Listed[][] = [];
  const open = new Map<string, Listed[]>();
  for (const name of names) {
    const kind = `${name.hasHash} ${name.shard}`;
    let call = open.get(kind);
    if (!call || call.length === (name.hasHash ? MAX_HASHES : MAX_LEAN)) {
      call = [];
      calls.push(call);
      open.set(kind, call);
    }
    call.push(name);
  }
  return calls;
}
