import type { Mutant } from "./mutant.js";

/** In the arbiter family: what a client would believe, forget or leave behind. */
export const family: readonly Mutant[] = [
  {
    title: "deadline from the reply",
    file: "stores/arbiter/acquisition.js",
    find: "this.accept(reply, deadlineOf(sentMs,",
    replace: "this.accept(reply, deadlineOf(this.#around.port.clock.nowMs(),",
  },
  {
    title: "deadline from the ttl after a repeat",
    file: "stores/arbiter/acquisition.js",
    find: "this.accept(reply, deadlineOf(sentMs, reply.remainingUs / 1000,",
    replace: "this.accept(reply, deadlineOf(sentMs, this.#claim.ttlMs,",
  },
  {
    title: "deadline of a renewal from its reply",
    file: "stores/arbiter/renewals.js",
    find: "grant.extend(deadlineOf(sentMs,",
    replace: "grant.extend(deadlineOf(this.#port.clock.nowMs(),",
  },
  {
    title: "no margin",
    file: "rules/margin.js",
    find: "Math.min(remainingMs, ttlMs) - marginMs(ttlMs)",
    replace: "Math.min(remainingMs, ttlMs)",
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
    find: "const grant = isBelieved ? this.accept(pushed, deadlineMs) : null;",
    replace:
      "const grant = isBelieved ? this.accept(pushed, deadlineMs + this.#claim.ttlMs) : null;",
  },
  {
    title: "a claim too short for the grace is believed",
    file: "stores/arbiter/acquisition.js",
    find: "deadlineMs - nowMs > leastMs",
    replace: "true",
  },
  {
    title: "the confirm waits for its batch",
    file: "stores/arbiter/confirmation.js",
    find: "this.#first = around.channel.sendNow(",
    replace: "this.#first = around.channel.send(",
  },
  {
    title: "an unbelieved push is dropped",
    file: "stores/arbiter/confirmation.js",
    find: "else if (!this.#claimant.isSettled)",
    replace: "else if (false)",
  },
  {
    title: "a late push takes the lock from its holder",
    file: "stores/arbiter/arbiter-store.js",
    find: "if (!this.#grants.of(owner))",
    replace: "if (true)",
  },
  {
    title: "one release overtakes another",
    file: "stores/arbiter/arbiter-store.js",
    find: "grant.isGivenBack = true;",
    replace: "this.#grants.onLeft(Object.assign(grant, { isGivenBack: true }).claim.owner);",
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
    replace: "this.end();",
  },
  {
    title: "a release tells of a loss after a repeat",
    file: "stores/arbiter/withdrawal.js",
    find: "this.#resolve(reply.held || resent || this.#failures > 0);",
    replace: "this.#resolve(reply.held || this.#failures > 0);",
  },
];
