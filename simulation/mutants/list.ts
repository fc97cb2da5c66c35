/**
 * Bugs to plant, one at a time, in a copy of the build. Each is small, plausible, and must be found
 * by the seeds that every test run goes through. `find` has to match exactly once in the compiled
 * file.
 */

export interface Mutant {
  readonly title: string;
  /** Below the compiled `src`. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

const rules: readonly Mutant[] = [
  {
    title: "no margin",
    file: "rules/margin.js",
    find: "return lengthMs / 100 + 2;",
    replace: "return 0;",
  },
  {
    title: "token ignores the last one",
    file: "rules/token.js",
    find: "return Math.max(wallUs, lastToken + 1);",
    replace: "return wallUs;",
  },
  {
    title: "token ignores the clock",
    file: "rules/token.js",
    find: "return Math.max(wallUs, lastToken + 1);",
    replace: "return lastToken + 1;",
  },
  {
    title: "the requester's limit only",
    file: "rules/fits.js",
    find: "<= Math.min(held.limit, request.limit)",
    replace: "<= request.limit",
  },
  {
    title: "the holders' limit only",
    file: "rules/fits.js",
    find: "<= Math.min(held.limit, request.limit)",
    replace: "<= held.limit",
  },
  {
    title: "a writer joins readers",
    file: "rules/fits.js",
    find: 'if (held.exclusive || request.mode === "exclusive")',
    replace: "if (held.exclusive)",
  },
];

const ledger: readonly Mutant[] = [
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
    find: "if (command.tombstoneUs > at.us)",
    replace: "if (false)",
  },
  {
    title: "tombstones stay for ever",
    file: "rules/ledger.js",
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
        return gone(state, command.owner);`,
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
    file: "rules/ledger.js",
    find: `if (!holder.confirmed)
            suspect(state, holder.client);`,
    replace: "",
  },
  {
    title: "a suspect is never cleared",
    file: "rules/ledger.js",
    find: "client.suspect = false;",
    replace: "",
  },
  {
    title: "silent clients keep their places",
    file: "rules/ledger.js",
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
        serve(state, at, emit);`,
    replace: "",
  },
  {
    title: "a handoff forgets its span",
    file: "rules/ledger.js",
    find: `state.dropWaiter(waiter);
    state.setLastToken(token + span - 1);`,
    replace: `state.dropWaiter(waiter);
    state.setLastToken(token);`,
  },
  {
    title: "what clients have seen is ignored",
    file: "rules/ledger.js",
    find: `return { type: "stale", reason: "ended" };
    state.setLastToken(Math.max(state.lastToken(), command.seenToken));`,
    replace: 'return { type: "stale", reason: "ended" };',
  },
  {
    title: "a grant to a dead client counts",
    file: "rules/ledger.js",
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
    file: "rules/ledger.js",
    find: `if (state.mark())
        return endWaiters(state, emit);`,
    replace: "",
  },
  {
    title: "the queue is a stack",
    file: "stores/memory/memory-queue.js",
    find: "a.order < b.order",
    replace: "a.order > b.order",
  },
];

const family: readonly Mutant[] = [
  {
    title: "deadline from the reply",
    file: "stores/arbiter/acquisition.js",
    find: "this.#accept(reply, sentMs + reply.remainingUs / 1000",
    replace: "this.#accept(reply, this.#around.port.clock.nowMs() + reply.remainingUs / 1000",
  },
  {
    title: "deadline from the ttl after a repeat",
    file: "stores/arbiter/acquisition.js",
    find: "this.#accept(reply, sentMs + reply.remainingUs / 1000",
    replace: "this.#accept(reply, sentMs + this.#claim.ttlMs",
  },
  {
    title: "deadline of a renewal from its reply",
    file: "stores/arbiter/arbiter-store.js",
    find: "grant.extend(deadlineOf(sentMs,",
    replace: "grant.extend(deadlineOf(this.port.clock.nowMs(),",
  },
  {
    title: "margin of the renewal only",
    file: "stores/arbiter/arbiter-store.js",
    find: "marginMs(Math.max(ttlMs, remainingMs))",
    replace: "marginMs(ttlMs)",
  },
  {
    title: "a late grant is kept",
    file: "stores/arbiter/acquisition.js",
    find: "if (this.#around.port.clock.exactMs() >= deadlineMs) {",
    replace: "if (false) {",
  },
  {
    title: "nothing is withdrawn",
    file: "stores/arbiter/acquisition.js",
    find: "if (!grant && (this.#entered || this.#unsure || this.#underWay > 0)) {",
    replace: "if (false) {",
  },
  {
    title: "what is under way is not withdrawn",
    file: "stores/arbiter/acquisition.js",
    find: "(this.#entered || this.#unsure || this.#underWay > 0)",
    replace: "this.#entered",
  },
  {
    title: "no tombstone for what is under way",
    file: "stores/arbiter/acquisition.js",
    find: "return this.#unsure || this.#underWay > 0 ? this.#notAfterUs + 1 : 0;",
    replace: "return 0;",
  },
  {
    title: "a changed connection goes unnoticed",
    file: "stores/arbiter/acquisition.js",
    find: "if (answer.resent)",
    replace: "if (false)",
  },
  {
    title: "belief without the lag check",
    file: "stores/arbiter/store-time.js",
    find: "if (!(lagMs >= 0 && lagMs <= margin))",
    replace: "if (false)",
  },
  {
    title: "belief in the full lease before the confirm",
    file: "stores/arbiter/acquisition.js",
    find: "const grant = isBelieved ? this.#accept(pushed, deadlineMs) : null;",
    replace:
      "const grant = isBelieved ? this.#accept(pushed, deadlineMs + this.#claim.ttlMs) : null;",
  },
  {
    title: "a claim too short for the grace is believed",
    file: "stores/arbiter/acquisition.js",
    find: "deadlineMs - port.clock.nowMs() > leastMs",
    replace: "true",
  },
  {
    title: "the confirm waits for its batch",
    file: "stores/arbiter/acquisition.js",
    find: "const confirmed = channel.sendNow(",
    replace: "const confirmed = channel.send(",
  },
  {
    title: "an unbelieved push is dropped",
    file: "stores/arbiter/acquisition.js",
    find: "if (!believed && !this.#settled)",
    replace: "if (false)",
  },
  {
    title: "a late push takes the lock from its holder",
    file: "stores/arbiter/arbiter-store.js",
    find: "if (!this.#grants.has(owner))",
    replace: "if (true)",
  },
  {
    title: "one release overtakes another",
    file: "stores/arbiter/arbiter-store.js",
    find: "grant.isGivenBack = true;",
    replace: "this.#grants.delete(grant.claim.owner);",
  },
  {
    title: "a loss before anybody keeps the lease is forgotten",
    file: "stores/arbiter/arbiter-store.js",
    find: "grant.end();",
    replace: "",
  },
  {
    title: "lost places are not asked for again",
    file: "stores/arbiter/vigil.js",
    find: "acquisition.ask();",
    replace: "void acquisition;",
  },
  {
    title: "nobody watches the holder's end",
    file: "stores/arbiter/vigil.js",
    find: "this.#wakeIn(reply.holder ? reply.dueUs / 1000 : this.#periodMs);",
    replace: "this.#wakeIn(this.#periodMs);",
  },
  {
    title: "a failed touch is the last",
    file: "stores/arbiter/vigil.js",
    find: "this.#wakeIn(this.#periodMs / RETRY_PART);",
    replace: "",
  },
  {
    title: "a release tells of a loss after a repeat",
    file: "stores/arbiter/arbiter-store.js",
    find: "return reply.held || resent || failures > 0;",
    replace: "return reply.held || failures > 0;",
  },
];

const lease: readonly Mutant[] = [
  {
    title: "assertHeld looks at a flag",
    file: "lease/keeper.js",
    find: "if (hold.isLive && this.#store.port.clock.exactMs() >= hold.deadlineMs) {",
    replace: "if (false) {",
  },
  {
    title: "sleep is not counted",
    file: "lease/keeper.js",
    find: "if (hold.isLive && this.#store.port.clock.exactMs() >= hold.deadlineMs) {",
    replace: "if (hold.isLive && this.#store.port.clock.nowMs() >= hold.deadlineMs) {",
  },
  {
    title: "the deadline passes without a word",
    file: "lease/keeper.js",
    find: `this.#lose(hold, hold.endReason, "");
                continue;`,
    replace: `this.#holds.remove(hold);
                continue;`,
  },
  {
    title: "the keeper sleeps with the machine",
    file: "lease/keeper.js",
    find: "Math.min(Math.max(1, next.dueMs - nowMs), LONGEST_NAP_MS)",
    replace: "Math.max(1, next.dueMs - nowMs)",
  },
  {
    title: "no answer is a loss",
    file: "lease/keeper.js",
    find: 'if (renewal.type === "gone")',
    replace: 'if (renewal.type !== "renewed")',
  },
  {
    title: "renewals come too late",
    file: "lease/keeper.js",
    find: "? sentMs + hold.ttlMs / 3",
    replace: "? sentMs + hold.ttlMs * 2",
  },
  {
    title: "the grace is ignored",
    file: "lease/hold.js",
    find: "return this.deadlineMs - this.graceMs;",
    replace: "return this.deadlineMs;",
  },
  {
    title: "maxHoldMs is ignored",
    file: "lease/hold.js",
    find: "return Math.min(this.grant.deadlineMs, this.endMs);",
    replace: "return this.grant.deadlineMs;",
  },
  {
    title: "the wait has no end",
    file: "lease/wait-time.js",
    find: 'this.end("time");',
    replace: "{}",
  },
  {
    title: "a settled wait keeps its timer",
    file: "lease/wait-time.js",
    find: "this.#timer?.cancel();",
    replace: "",
  },
];

const cohort: readonly Mutant[] = [
  {
    title: "the span is used again",
    file: "lease/cohort.js",
    find: "this.#turnsLeft -= 1;",
    replace: "",
  },
  {
    title: "turns share a token",
    file: "lease/cohort.js",
    find: "const token = this.#nextToken++;",
    replace: "const token = this.#nextToken;",
  },
  {
    title: "who gave up gets a turn",
    file: "lease/cohort.js",
    find: "this.#members.remove(place);",
    replace: "",
  },
  {
    title: "unequal leases take turns",
    file: "lease/cohort.js",
    find: "return options.ttlMs === ttlMs && options.graceMs === graceMs;",
    replace: "return true;",
  },
  {
    title: "a loss stops the cohort",
    file: "lease/cohort.js",
    find: `lease?.onLost(reason, detail);
        this.#goOn();`,
    replace: "lease?.onLost(reason, detail);",
  },
  {
    title: "the last turn stops the cohort",
    file: "lease/cohort.js",
    find: `const released = this.#duties.release(last);
        this.#goOn();`,
    replace: "const released = this.#duties.release(last);",
  },
  {
    title: "a span without a limit",
    file: "lease/cohort.js",
    find: "Math.min(this.#members.size, first.options.cohortLimit)",
    replace: "this.#members.size",
  },
];

export const mutants: readonly Mutant[] = [...rules, ...ledger, ...family, ...lease, ...cohort];
