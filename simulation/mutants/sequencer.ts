import type { Mutant } from "./mutant.js";

const SESSION = "stores/etcd/etcd-session.js";
const LINE = "stores/sequencer/line.js";
const ACQUISITION = "stores/sequencer/acquisition.js";
const KEPT = "stores/sequencer/session.js";

/** In the sequencer family: what an entry, a session or a watch would do wrong. */
export const sequencer: readonly Mutant[] = [
  {
    title: "sequencer: a keep-alive counts without a proof of its term",
    file: SESSION,
    find: "if (header.raft_term !== kept.header.raft_term || ttlMs <= 0) {",
    replace: "if (ttlMs <= 0) {",
  },
  {
    title: "sequencer: a deadline counts from the proof",
    file: KEPT,
    find: "Math.max(this.#deadlineMs, sentMs + ttlMs - marginMs(ttlMs));",
    replace: "Math.max(this.#deadlineMs, this.#port.clock.nowMs() + ttlMs - marginMs(ttlMs));",
  },
  {
    title: "sequencer: a late grant is kept",
    file: ACQUISITION,
    find: "if (this.#around.port.clock.exactMs() >= session.deadlineMs)",
    replace: "if (false)",
  },
  {
    title: "sequencer: an event is taken for a turn",
    file: LINE,
    find: "this.look(change.at);",
    replace: "this.#waiters[0]?.onTurn(this.#listing, 0);",
  },
  {
    title: "sequencer: an entry that holds does not say so",
    file: ACQUISITION,
    find: "session.link.markHeld(entry, CALL_MS).catch(() => { });",
    replace: "",
  },
  {
    title: "sequencer: limits that have left are forgotten",
    file: ACQUISITION,
    find: "this.#hadLimits = hasLimits(listing.entries);",
    replace: "",
  },
  {
    title: "sequencer: the end of a lease here goes unnoticed",
    file: "stores/sequencer/custody.js",
    find: "this.#lineOf(grant.entry.place)?.look();",
    replace: "",
  },
  {
    title: "sequencer: a waiter never looks by itself",
    file: LINE,
    find: "this.#timer = this.#duties.port.timers.after(delayMs, () => this.look(), true);",
    replace: "",
  },
  {
    title: "sequencer: an entry that is not wanted stays",
    file: ACQUISITION,
    find: "left = await this.#around.withdraw(entry, session, isAsked);",
    replace: "session.remove(entry);",
  },
  {
    title: "sequencer: a late copy makes a withdrawn entry again",
    file: SESSION,
    find: 'const guard = entry.isDoubtful ? [put(this.#key, "", this.#lease)] : [];',
    replace: "const guard = [];",
  },
  {
    title: "sequencer: names are used again while a copy may come",
    file: SESSION,
    find: "this.#numbers.giveBack(number, !mayEcho && !entry.isDoubtful);",
    replace: "this.#numbers.giveBack(number, true);",
  },
  {
    title: "sequencer: a repeated release tells of a loss",
    file: SESSION,
    find: "const wasRepeated = sendings.count > 1;",
    replace: "const wasRepeated = false;",
  },
  {
    title: "sequencer: waiters of the same process do not see the mark",
    file: SESSION,
    find: "line?.response_range?.kvs ?? []",
    replace: 'line?.response_range?.kvs.filter((kv) => !kv.key.toString().endsWith("/done")) ?? []',
  },
  {
    title: "sequencer: a renewal does not mind how little is left",
    file: "lease/hold.js",
    find: "return sentMs + Math.min(renewAfterMs(this.ttlMs), halfMs);",
    replace: "return sentMs + renewAfterMs(this.ttlMs);",
  },
];
