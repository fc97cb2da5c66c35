/** What the nodes keep, for people: who holds a lock, which are in use, and to end one by hand. */
import type { QuorumError } from "../../errors.js";
import { list, text } from "../../foreign-data.js";
import type { Space } from "../../rules/name.js";
import type { LockView, WaiterView } from "../../store.js";
import type { Port } from "../../time/port.js";
import { within } from "../../time/timers.js";
import { checkVersion } from "../redis-client/check-version.js";
import type { AnyAnswer } from "./answers.js";
import { majorityOf } from "./ballot.js";
import { nodeError, quorumError } from "./failure.js";
import { holderView, markView, type NameRecord, parseRecord } from "./name-record.js";
import { Poll } from "./poll.js";
import type { RedlockKeys } from "./redlock-keys.js";
import type { RedlockNode } from "./redlock-node.js";
import { decodeForeign, decodeRelease, expiryMs, type Failure, type Foreign } from "./vote.js";

const LOOK_MS = 1_000;
const SCAN_MS = 5_000;
/** So many names at a time are looked at for a list. */
const LIST_CHUNK = 50;

/** The plain key at one node. */
interface Kept {
  readonly value: string;
  readonly remainingMs: number;
  readonly record: NameRecord | null;
  /** Who waits, and since when by their own clocks. */
  readonly line: readonly { readonly member: string; readonly sinceMs: number }[];
}

export class Inspection {
  readonly #port: Port;
  readonly #nodes: readonly RedlockNode[];
  readonly #keys: RedlockKeys;

  constructor(port: Port, nodes: readonly RedlockNode[], keys: RedlockKeys) {
    this.#port = port;
    this.#nodes = nodes;
    this.#keys = keys;
  }

  /** Shows whom a majority holds, or may hold as far as the nodes that answered can tell. */
  async inspect(space: Space, name: string): Promise<LockView> {
    const poll = this.#ask(space, name, ["look"], decodeKept);
    await poll.judged;
    const { answers } = poll;
    const kept = answers.flatMap((answer) => (answer && "value" in answer ? [answer] : []));
    const majority = majorityOf(answers.length);
    if (kept.length < majority) throw quorumError(this.#nodes, failures(answers));
    const holder = mostKept(kept, majority - (answers.length - kept.length));
    const nowMs = this.#port.clock.wallUs() / 1000;
    const view = { space, name, holders: [], waiters: waitersIn(kept, nowMs), mark: null };
    if (!holder) return view;
    const { record, remainingMs } = holder;
    if (record?.kind === "done") return { ...view, mark: markView(record, remainingMs) };
    return { ...view, holders: [holderView(record, remainingMs, nowMs)] };
  }

  /** Names that were locked within a day leave a ballot: those of them that are in use. */
  async *list(space: Space, prefix: string): AsyncIterable<LockView> {
    const found = await Promise.allSettled(
      this.#nodes.map((node) =>
        within(this.#port.timers, SCAN_MS, this.#names(node, space, prefix)),
      ),
    );
    const heard = found.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
    if (heard.length < majorityOf(found.length)) {
      const answers = found.map((result, at): Failure | undefined =>
        result.status === "rejected"
          ? { type: "error", error: nodeError(this.#nodes[at]?.name ?? "", result.reason) }
          : undefined,
      );
      throw quorumError(this.#nodes, answers);
    }
    const names = [...new Set(heard.flat())].sort();
    for (let start = 0; start < names.length; start += LIST_CHUNK) {
      const chunk = names.slice(start, start + LIST_CHUNK);
      const views = await Promise.all(chunk.map((name) => this.#listed(space, name)));
      for (const view of views) {
        if (!view) continue;
        if (view.holders.length > 0 || view.waiters.length > 0 || view.mark) yield view;
      }
    }
  }

  /** True when it was there and has no majority any more. */
  async revoke(space: Space, name: string, token: bigint, reason: string): Promise<boolean> {
    const poll = this.#ask(space, name, ["revoke", `${token}`, reason], decodeRelease);
    await poll.judged;
    const { answers } = poll;
    const count = (type: string): number => answers.filter((one) => one?.type === type).length;
    const { length } = answers;
    const majority = majorityOf(length);
    const [ended, absent] = [count("released"), count("absent")];
    if (absent > length - majority) return false;
    if (ended + absent > length - majority) return ended > 0;
    throw quorumError(this.#nodes, answers, { lockName: name, outcome: "unknown" });
  }

  /** Null for a name that is left out because of foreign data, which the poll has reported. */
  async #listed(space: Space, name: string): Promise<LockView | null> {
    try {
      return await this.inspect(space, name);
    } catch (error) {
      const { votes } = error as QuorumError;
      const heard = votes?.filter(({ vote }) => vote === "granted" || vote === "foreign") ?? [];
      if (heard.length < majorityOf(this.#nodes.length)) throw error;
      return null;
    }
  }

  async #names(node: RedlockNode, space: Space, prefix: string): Promise<string[]> {
    const { driver } = node;
    // Where no ballot is found, no script runs that would refuse a server that is too old.
    await checkVersion(driver, this.#keys.ofNode()[0], "redlock");
    const pattern = this.#keys.ballots(driver.keyPrefix, space, prefix);
    const names = new Set<string>();
    const untilMs = this.#port.clock.nowMs() + SCAN_MS;
    let cursor = "0";
    do {
      const args = [cursor, "MATCH", pattern, "COUNT", "1000"];
      const [next, keys] = list(await driver.send("", "scan", args));
      for (const key of list(keys)) {
        names.add(this.#keys.nameOf(driver.keyPrefix, space, String(key)));
      }
      cursor = String(next);
      // Nobody waits for longer; a cursor that never ends would be followed for ever.
    } while (/^[1-9]\d*$/.test(cursor) && this.#port.clock.nowMs() < untilMs);
    return [...names];
  }

  /** Waits for every node, within reason: people want to see all there is. */
  #ask<Answer>(
    space: Space,
    name: string,
    args: readonly string[],
    decode: (raw: unknown) => Answer,
  ): Poll<Answer, true> {
    return new Poll<Answer, true>(this.#port, {
      nodes: this.#nodes,
      keys: this.#keys.of(space, name),
      args,
      limitMs: LOOK_MS,
      decode,
      judge: (answers) => (answers.includes(undefined) ? null : true),
    });
  }
}

function decodeKept(raw: unknown): Kept | Foreign {
  const refused = decodeForeign(raw);
  if (refused) return refused;
  const [pttl, value, ballot, waiters] = list(raw);
  const record = parseRecord(text(ballot));
  const line = list(waiters);
  return {
    value: text(value),
    remainingMs: expiryMs(pttl),
    record: record?.value === value ? record : null,
    line: line.flatMap((member, at) => {
      const sinceMs = Number(line[at + 1]) / 1000;
      return at % 2 === 0 && Number.isFinite(sinceMs) ? [{ member: text(member), sinceMs }] : [];
    }),
  };
}

/** All that any node knows of; what they say of themselves is not kept. */
function waitersIn(kept: readonly Kept[], nowMs: number): WaiterView[] {
  const since = new Map<string, number>();
  for (const { line } of kept) {
    for (const { member, sinceMs } of line) {
      since.set(member, Math.min(sinceMs, since.get(member) ?? sinceMs));
    }
  }
  const order = [...since.values()].sort((a, b) => a - b);
  return order.map((sinceMs) => ({
    mode: "exclusive",
    weight: 1,
    limit: null,
    meta: {},
    waitedMs: Math.max(0, nowMs - sinceMs),
  }));
}

/** The value that most nodes keep, if they are enough; of those the one that knows most of it. */
function mostKept(kept: readonly Kept[], least: number): Kept | null {
  const byValue = new Map<string, Kept[]>();
  for (const one of kept) {
    if (one.value === "") continue;
    byValue.set(one.value, [...(byValue.get(one.value) ?? []), one]);
  }
  const [most = []] = [...byValue.values()].sort((a, b) => b.length - a.length);
  if (most.length < Math.max(1, least)) return null;
  const known = (one: Kept): number => Object.keys(one.record?.meta ?? {}).length;
  const [best] = most.toSorted((a, b) => known(b) - known(a) || b.remainingMs - a.remainingMs);
  return best ?? null;
}

function failures(answers: readonly (Kept | Failure | undefined)[]): AnyAnswer[] {
  return answers.map((answer) =>
    answer && "value" in answer ? { type: "open", stored: 0 } : answer,
  );
}
