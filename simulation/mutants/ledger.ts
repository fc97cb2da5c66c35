import type { Mutant } from "./mutant.js";

/** In the ledger: what the store itself would do wrong. */
export const ledger: readonly Mutant[] = [
  {
    title: "no notAfter for an acquire",
    file: "rules/ledger.js",
    find: `if (at.us > command.notAfterUs)
        return { type: "stale", reason: "late" };
    const { owner } = command;`,
    replace: "const { owner } = command;",
  },
  {
    title: "no tombstone after a release",
    file: "rules/ledger.js",
    find: "if (tombstoneUs > at.us)",
    replace: "if (false)",
  },
  {
    title: "tombstones stay for ever",
    file: "rules/upkeep.js",
    find: "state.dropTombstones(at.us);",
    replace: "",
  },
  {
    title: "a renewal shortens",
    file: "rules/ledger.js",
    find: "holder.expiryUs = Math.max(holder.expiryUs, at.us + command.ttlUs);",
    replace: "holder.expiryUs = at.us + command.ttlUs;",
  },
  {
    title: "a renewal re-creates",
    file: "rules/ledger.js",
    find: `if (!holder)
        return gone(state, command.owner, at);`,
    replace: `if (!holder) {
        const { owner, ttlUs } = command;
        const all = { mode: "exclusive", weight: 1, limit: 1, span: 1, meta: "{}", client: "" };
        const times = { expiryUs: at.us + ttlUs, grantedUs: at.us, confirmed: true };
        state.putHolder({ ...all, ...times, owner, ttlUs, token: command.seenToken });
        return renewed(state, state.holder(owner), at);
    }`,
  },
  {
    title: "a confirm does not extend",
    file: "rules/ledger.js",
    find: "holder.expiryUs = Math.max(holder.expiryUs, at.us + holder.ttlUs);",
    replace: "",
  },
  {
    title: "a lapsed claim goes unnoticed",
    file: "rules/upkeep.js",
    find: `if (!holder.confirmed && !hasSpokenSince(state, holder))
        suspect(state, holder.client);`,
    replace: "",
  },
  {
    title: "a lapse that is noticed late makes a suspect of a client that spoke",
    file: "rules/upkeep.js",
    find: "if (!holder.confirmed && !hasSpokenSince(state, holder))",
    replace: "if (!holder.confirmed)",
  },
  {
    title: "a suspect is never cleared",
    file: "rules/ledger.js",
    find: "client.suspect = false;",
    replace: "",
  },
  {
    title: "silent clients keep their places",
    file: "rules/upkeep.js",
    find: "state.dropClient(client);",
    replace: "break;",
  },
  {
    title: "newcomers overtake the queue",
    file: "rules/ledger.js",
    find: "if (!state.head() && fits(state.occupancy(), command))",
    replace: "if (fits(state.occupancy(), command))",
  },
  {
    title: "a waiter is not removed on abort",
    file: "rules/ledger.js",
    find: `if (waiter)
        state.dropWaiter(waiter);`,
    replace: "",
  },
  {
    title: "a release serves nobody",
    file: "rules/ledger.js",
    find: `if (holder || waiter)
        serve(state, at, emit, upkeep);`,
    replace: "",
  },
  {
    title: "a handoff forgets its span",
    file: "rules/upkeep.js",
    find: `state.dropWaiter(waiter);
    state.setLastToken(token + span - 1);`,
    replace: `state.dropWaiter(waiter);
    state.setLastToken(token);`,
  },
  {
    title: "what clients have seen is ignored",
    file: "rules/ledger.js",
    find: "if (!learn(state, command.seenToken, at))",
    replace: "if (false)",
  },
  {
    title: "a grant to a dead client counts",
    file: "rules/upkeep.js",
    find: "return suspect(state, client);",
    replace: "suspect(state, client);",
  },
  {
    title: "a finished once leaves no mark",
    file: "rules/ledger.js",
    find: "if (keep) {",
    replace: "if (false) {",
  },
  {
    title: "a mark does not end the waiting",
    file: "rules/upkeep.js",
    find: "const mark = state.mark();",
    replace: "const mark = undefined;",
  },
  {
    title: "the queue is a stack",
    file: "stores/memory/memory-queue.js",
    find: "a.order < b.order",
    replace: "a.order > b.order",
  },
];
