/** For people: shows who holds a lock and which locks are in use, and ends a lease by hand. */

import type { LockView, WaiterView } from "../../contract/store.js";
import { QuorumError } from "../../errors/index.js";
import { list, text } from "../../events/foreign-data.js";
import { majorityOf, Tally } from "../../rules/majority.js";
import type { Space } from "../../rules/name.js";
import { within } from "../../time/timers.js";
import { checkVersion } from "../redis-client/client.js";
import type { AnyAnswer } from "./answers.js";
import { nodeError, quorumError } from "./errors.js";
import type { KeyLayout } from "./layout.js";
import {
  decodeForeign,
  decodeRelease,
  expiryMs,
  type Failure,
  type Foreign,
  holderView,
  markView,
  type NameRecord,
  type NodeRelease,
  parseRecord,
} from "./protocol.js";
import type { Poll, Quorum, RedlockNode } from "./quorum.js";

const LOOK_MS = 1_000;
const SCAN_MS = 5_000;
/** A list looks at this many names at a time. */
const LIST_CHUNK = 50;

/** The data of one node about a lock. */
interface Kept {
  readonly type: "kept";
  readonly value: string;
  readonly remainingMs: number;
  readonly record: NameRecord | null;
  /** The waiters, and since when each waits by its own clock. */
  readonly queue: readonly { readonly member: string; readonly sinceMs: number }[];
}

export class Inspection {
  readonly #quorum: Quorum;
  readonly #layout: KeyLayout;

  constructor(quorum: Quorum, layout: KeyLayout) {
    this.#quorum = quorum;
    this.#layout = layout;
  }

  /** Shows the holder that has a majority, or may have one as far as the answers can tell. */
  async inspect(space: Space, name: string): Promise<LockView> {
    const poll = this.#ask(space, name, ["look"], decodeKept);
    await poll.judged;
    const { answers } = poll;
    if (!new Tally(answers).isMajority("kept")) {
      throw quorumError(this.#quorum.nodes, failures(answers));
    }
    const kept = answers.flatMap((answer) => (answer?.type === "kept" ? [answer] : []));
    const holder = mostKept(kept, majorityOf(answers.length) - (answers.length - kept.length));
    const nowMs = this.#quorum.runtime.clock.wallUs() / 1000;
    const view = { space, name, holders: [], waiters: waitersIn(kept, nowMs), mark: null };
    if (!holder) return view;
    const { record, remainingMs } = holder;
    if (record?.kind === "done") return { ...view, mark: markView(record, remainingMs) };
    return { ...view, holders: [holderView(record, remainingMs, nowMs)] };
  }

  /** A name that was locked within a day, or has a mark, has a ballot. Shows names in use. */
  async *list(space: Space, prefix: string): AsyncIterable<LockView> {
    const { nodes, runtime } = this.#quorum;
    const found = await Promise.allSettled(
      nodes.map((node) => within(runtime.timers, SCAN_MS, this.#names(node, space, prefix))),
    );
    const heard = found.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
    if (heard.length < majorityOf(found.length)) {
      const answers = found.map((result, at): Failure | undefined =>
        result.status === "rejected"
          ? { type: "error", error: nodeError(nodes[at]?.name ?? "", result.reason) }
          : undefined,
      );
      throw quorumError(nodes, answers);
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

  /** Ends a lease, or drops a mark. True when it was there and has no majority any more. */
  async revoke(space: Space, name: string, token: bigint, reason: string): Promise<boolean> {
    const args = ["revoke", `${token}`, reason];
    const poll = this.#ask<NodeRelease>(space, name, args, decodeRelease);
    await poll.judged;
    const tally = new Tally(poll.answers);
    if (tally.preventsMajority("absent")) return false;
    if (tally.preventsMajority("released", "absent")) return tally.count("released") > 0;
    throw quorumError(this.#quorum.nodes, poll.answers, { lockName: name, outcome: "unknown" });
  }

  /** Null for a name that is left out because of foreign data; the poll has reported the data. */
  async #listed(space: Space, name: string): Promise<LockView | null> {
    try {
      return await this.inspect(space, name);
    } catch (error) {
      if (!(error instanceof QuorumError)) throw error;
      const heard = error.votes.filter(({ vote }) => vote === "granted" || vote === "foreign");
      if (heard.length < majorityOf(error.votes.length)) throw error;
      return null;
    }
  }

  async #names(node: RedlockNode, space: Space, prefix: string): Promise<string[]> {
    const { driver } = node;
    const { clock } = this.#quorum.runtime;
    // A server without any ballot runs no script, so no script refuses a server that is too old.
    // A single server may refuse scripts, which its first answer shows.
    if (this.#quorum.isSingleServer) await node.ask(this.#layout.keysOfNode(), ["survey"]);
    else await checkVersion(driver, this.#layout.keysOfNode()[0], "redlock");
    const pattern = this.#layout.ballotPattern(driver.keyPrefix, space, prefix);
    const names = new Set<string>();
    const untilMs = clock.nowMs() + SCAN_MS;
    // Each master of a Cluster has a part of the keys.
    for (const master of await driver.masters()) {
      let cursor = "0";
      do {
        const args = ["scan", cursor, "MATCH", pattern, "COUNT", "1000"];
        const [next, keys] = list(await master.send(args));
        for (const key of list(keys)) {
          const name = this.#layout.nameOf(driver.keyPrefix, space, String(key));
          if (name?.startsWith(prefix)) names.add(name);
        }
        cursor = String(next);
        // The caller waits no longer, and a cursor may never end.
      } while (/^[1-9]\d*$/.test(cursor) && clock.nowMs() < untilMs);
    }
    return [...names];
  }

  /** Waits for every node, within a limit: people want to see all there is. */
  #ask<Answer extends { readonly type: string }>(
    space: Space,
    name: string,
    args: readonly string[],
    decode: (raw: unknown) => Answer,
  ): Poll<Answer, true> {
    return this.#quorum.ask<Answer, true>({
      keys: this.#layout.keysOf(space, name),
      args,
      limitMs: LOOK_MS,
      decode,
      judge: (answers) => (new Tally(answers).isOpen ? null : true),
    });
  }
}

function decodeKept(raw: unknown): Kept | Foreign {
  const refused = decodeForeign(raw);
  if (refused) return refused;
  const [pttl, given, ballot, waiters] = list(raw);
  const value = text(given);
  const known = parseRecord(text(ballot));
  const record = known?.value === value ? known : null;
  const queue = list(waiters);
  return {
    type: "kept",
    value,
    remainingMs: expiryMs(pttl),
    record,
    queue: queue.flatMap((member, at) => {
      const sinceMs = Number(queue[at + 1]) / 1000;
      return at % 2 === 0 && Number.isFinite(sinceMs) ? [{ member: text(member), sinceMs }] : [];
    }),
  };
}

/** All waiters that any node knows of. Nodes do not keep the meta of waiters. */
function waitersIn(kept: readonly Kept[], nowMs: number): WaiterView[] {
  const since = new Map<string, number>();
  for (const { queue } of kept) {
    for (const { member, sinceMs } of queue) {
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

/** The value that most nodes keep, if they are enough; of these nodes the one with most details. */
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
  return answers.map((answer) => (answer?.type === "kept" ? { type: "open", stored: 0 } : answer));
}
