/** A store over independent nodes: asks all of them, and believes what a majority says. */
import { ClosedError } from "../../errors.js";
import { keyOf, type Space } from "../../rules/name.js";
import type {
  Busy,
  Claim,
  GoneEvent,
  Grant,
  LockView,
  Meta,
  Renewal,
  Store,
  Traits,
  Wait,
} from "../../store.js";
import { networkPort, type Port } from "../../time/port.js";
import { Acquisition } from "./acquisition.js";
import {
  deadlineOf,
  judgeRelease,
  judgeRenewal,
  majorityOf,
  type RenewalJudgement,
} from "./ballot.js";
import { Inspection } from "./inspection.js";
import { Membership } from "./membership.js";
import { Poll } from "./poll.js";
import { quorumError } from "./quorum-report.js";
import { RedlockGrant } from "./redlock-grant.js";
import { RedlockKeys } from "./redlock-keys.js";
import type { RedlockNode } from "./redlock-node.js";
import { releaseArgs, setIdOf, spanText } from "./requests.js";
import { SeenBallots } from "./seen-ballots.js";
import type { Surroundings } from "./surroundings.js";
import {
  decodeRelease,
  decodeRenewal,
  type Failure,
  type NodeRelease,
  type NodeRenewal,
  type Vote,
} from "./vote.js";
import { WakeUps } from "./wake-ups.js";
import { Withdrawals } from "./withdrawals.js";

export const TRAITS: Traits = {
  scope: "network",
  modes: ["exclusive"],
  fifo: false,
  tokenSpan: true,
  transferable: true,
  marks: true,
  minTtlMs: 100,
  exclusiveBecause: "its nodes agree on one holder by majority, not on how many share a lock",
};

/** A node time-out is at most this part of the ttl, so that a round leaves most of the lease. */
const LIMIT_PART = 5;
const LONGEST_LIMIT_MS = 1_000;
/** Renewals and releases end as soon as a majority has answered: who is slow may be needed. */
const LONGEST_RENEWAL_MS = 5_000;
const LONGEST_RELEASE_MS = 500;
/** Long enough to come and vote, also on a busy machine. */
const RESERVE_TIMEOUTS = 4;
const RETRY_MS = 50;
/** A node that is slow once in its life is not left out for that. */
const SURVEY_TIMEOUTS = 5;

export interface RedlockSettings {
  readonly namespace: string;
  readonly nodeTimeoutMs: number;
  readonly driftFactor: number;
  readonly maxTtlMs: number;
  readonly bootstrap: "wait" | "now";
  /** Closes the clients, where they are ours. */
  readonly onClose?: () => Promise<unknown>;
}

export class RedlockStore implements Store {
  readonly name = "redlock";
  readonly traits: Traits = TRAITS;
  readonly port: Port;
  readonly #nodes: readonly RedlockNode[];
  readonly #settings: RedlockSettings;
  readonly #setId: string;
  readonly #keys: RedlockKeys;
  readonly #membership: Membership;
  readonly #wakeUps: WakeUps;
  readonly #withdrawals: Withdrawals;
  readonly #inspection: Inspection;
  readonly #seen = new SeenBallots();
  readonly #reserveMs: number;
  readonly #around: Surroundings;
  readonly #acquisitions = new Set<Acquisition>();
  readonly #grants = new Map<string, RedlockGrant>();
  #lastMeta: Meta | undefined;
  #lastMetaText = "";
  #isClosed = false;
  #onGone: (event: GoneEvent) => void = () => {};

  constructor(
    nodes: readonly RedlockNode[],
    settings: RedlockSettings,
    port: Port = networkPort(),
  ) {
    const { namespace, nodeTimeoutMs, driftFactor, maxTtlMs, bootstrap } = settings;
    this.port = port;
    this.#nodes = nodes;
    this.#settings = settings;
    const set = nodes
      .map(({ name }) => name)
      .sort()
      .join(",");
    this.#setId = setIdOf(set);
    this.#keys = new RedlockKeys(namespace);
    const rules = { set, maxTtlMs, bootstrap };
    const surveyMs = SURVEY_TIMEOUTS * nodeTimeoutMs;
    this.#membership = new Membership(port, nodes, this.#keys.ofNode(), rules, surveyMs);
    const reserveMs = Math.ceil(RESERVE_TIMEOUTS * nodeTimeoutMs);
    this.#reserveMs = reserveMs;
    this.#withdrawals = new Withdrawals(port, nodes, reserveMs);
    this.#inspection = new Inspection(port, nodes, this.#keys);
    this.#wakeUps = new WakeUps(
      port,
      nodes,
      (at, owner, token, reason) => this.#onRevoked(at, owner, token, reason),
      (at) => {
        for (const grant of this.#grants.values()) void this.#lookAfter(grant, at);
      },
    );
    this.#around = {
      port,
      nodes,
      setId: this.#setId,
      driftFactor,
      seen: this.#seen,
      wakeUps: this.#wakeUps,
      reserveMs,
      // Where a majority was silent, more patience is the better bet than asking again.
      limitMs: (ttlMs, failures) =>
        Math.min(nodeTimeoutMs * 2 ** failures, ttlMs / LIMIT_PART, LONGEST_LIMIT_MS),
      metaText: ({ meta }) => this.#metaText(meta),
      readmit: () => this.#membership.readmit(),
      isAnnounced: (ttlMs) => this.#membership.isAnnounced(ttlMs),
      announce: (ttlMs) => this.#membership.announce(ttlMs),
      onMajority: () => this.#membership.onMajority(),
      onVote: (vote) => this.#notice(vote),
      withdraw: (withdrawal) => this.#withdrawals.withdraw(withdrawal),
    };
  }

  async acquire(claim: Claim, wait: Wait | null): Promise<Grant | Busy> {
    if (this.#isClosed) throw new ClosedError({ store: this.name });
    this.#wakeUps.listen();
    const keys = this.#keys.of(claim.space, claim.name);
    const acquisition = new Acquisition(claim, keys, wait, this.#around);
    this.#acquisitions.add(acquisition);
    const { ups } = this.#wakeUps;
    try {
      const outcome = await acquisition.run();
      if (outcome.type === "granted") {
        this.#grants.set(outcome.claim.owner, outcome);
        if (this.#wakeUps.ups !== ups) {
          for (const at of this.#nodes.keys()) void this.#lookAfter(outcome, at);
        }
      }
      return outcome;
    } finally {
      this.#acquisitions.delete(acquisition);
    }
  }

  renew(
    grants: readonly { readonly grant: Grant; readonly ttlMs: number }[],
  ): Promise<readonly Renewal[]> {
    return Promise.all(grants.map(({ grant, ttlMs }) => this.#renew(grant as RedlockGrant, ttlMs)));
  }

  async release(
    given: Grant,
    withinMs: number,
    keep?: { readonly ttlMs: number; readonly meta: Meta },
  ): Promise<boolean> {
    const grant = given as RedlockGrant;
    const { claim, token } = grant;
    if (grant.isReleased) return false;
    this.#grants.delete(claim.owner);
    const ballot = Number(token);
    this.#seen.note(keyOf(claim.space, claim.name), ballot + 1, this.port.clock.wallUs());
    const args = releaseArgs(claim.owner, ballot, this.#reserveMs);
    if (keep) args.push(`${Math.ceil(keep.ttlMs)}`, JSON.stringify(keep.meta));
    const isHeld = await this.#release(grant, args, this.port.clock.nowMs() + withinMs);
    grant.isReleased = true;
    return isHeld;
  }

  async resume(claim: Claim, token: bigint): Promise<Grant | null> {
    const keys = this.#keys.of(claim.space, claim.name);
    this.#wakeUps.listen();
    const untilMs = this.port.clock.nowMs() + claim.storeTimeoutMs;
    const grant = new RedlockGrant(claim, keys, Number(token), Number.NEGATIVE_INFINITY);
    for (;;) {
      const { judgement, answers } = await this.#sendRenewal(grant, claim.ttlMs);
      if (judgement === "gone") return null;
      if (judgement === "renewed") {
        if (this.port.clock.exactMs() >= grant.deadlineMs) return null;
        this.#grants.set(claim.owner, grant);
        return grant;
      }
      if (this.port.clock.nowMs() >= untilMs) {
        throw quorumError(this.#nodes, answers, { lockName: claim.name });
      }
      await this.#pause(RETRY_MS);
    }
  }

  onEvent(listener: (event: GoneEvent) => void): void {
    this.#onGone = listener;
  }

  inspect(space: Space, name: string): Promise<LockView> {
    return this.#inspection.inspect(space, name);
  }

  list(space: Space, prefix: string): AsyncIterable<LockView> {
    return this.#inspection.list(space, prefix);
  }

  revoke(space: Space, name: string, token: bigint, reason: string): Promise<boolean> {
    return this.#inspection.revoke(space, name, token, reason);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const acquisition of [...this.#acquisitions]) acquisition.giveUp();
    await this.#withdrawals.close();
    this.#wakeUps.close();
    await this.#settings.onClose?.();
  }

  async #renew(grant: RedlockGrant, ttlMs: number): Promise<Renewal> {
    // A renewal after the own deadline could revive what somebody else was promised.
    if (this.port.clock.exactMs() >= grant.deadlineMs) {
      return { type: "gone", reason: "expired", detail: "" };
    }
    const { judgement, answers } = await this.#sendRenewal(grant, ttlMs);
    if (judgement === "renewed") return { type: "renewed", waiting: false };
    if (judgement === "gone") return { type: "gone", ...lossOf(answers) };
    const about = { lockName: grant.claim.name, outcome: "unknown" } as const;
    return { type: "unknown", error: quorumError(this.#nodes, answers, about) };
  }

  async #sendRenewal(
    grant: RedlockGrant,
    ttlMs: number,
  ): Promise<{
    judgement: RenewalJudgement;
    answers: readonly (NodeRenewal | Failure | undefined)[];
  }> {
    const membership = this.#membership;
    const isKnown = membership.isAnnounced(ttlMs) || (await membership.announce(ttlMs));
    let poll = this.#pollRenewal(grant, ttlMs);
    let judgement = await poll.judged;
    // More was asked for than a majority may know of: then only the old deadline is certain.
    if (judgement === "renewed" && !isKnown) judgement = "unknown";
    const isShort = poll.answers.some(
      (answer) => answer?.type === "asleep" && answer.why === "short",
    );
    if (judgement === "unknown" && isShort && (await membership.announce(ttlMs))) {
      poll = this.#pollRenewal(grant, ttlMs);
      judgement = await poll.judged;
    }
    if (judgement === "renewed") {
      grant.extend(deadlineOf(poll.answers, poll.sentMs, this.#settings.driftFactor));
    }
    return { judgement: judgement ?? "unknown", answers: poll.answers };
  }

  #pollRenewal(
    { claim, keys, token, deadlineMs }: RedlockGrant,
    ttlMs: number,
  ): Poll<NodeRenewal, RenewalJudgement> {
    const restMs = Math.max(deadlineMs - this.port.clock.nowMs(), ttlMs / LIMIT_PART);
    const ttl = `${Math.ceil(ttlMs)}`;
    const { channel } = this.#wakeUps;
    return new Poll<NodeRenewal, RenewalJudgement>(this.port, {
      nodes: this.#nodes,
      keys,
      args: ["renew", this.#setId, claim.owner, `${token}`, spanText(claim), ttl, channel],
      limitMs: Math.min(restMs, LONGEST_RENEWAL_MS),
      decode: decodeRenewal,
      judge: judgeRenewal,
      onAnswer: (answer) => this.#notice(answer),
    });
  }

  async #release(
    { claim, keys }: RedlockGrant,
    args: readonly string[],
    untilMs: number,
  ): Promise<boolean> {
    const { clock } = this.port;
    const nodes = this.#nodes;
    // Absent after a try without an answer: that try released it, for nobody else could yet.
    const doubtful = new Set<number>();
    for (let failures = 0; ; failures += 1) {
      const before = nodes.map(({ driver }) => driver.changes());
      const restMs = untilMs - clock.nowMs();
      const poll = new Poll<NodeRelease, boolean | "silent">(this.port, {
        nodes,
        keys,
        args,
        limitMs: Math.max(1, Math.min(restMs, LONGEST_RELEASE_MS * (failures + 1))),
        decode: decodeRelease,
        judge: (answers) =>
          judgeRelease(
            answers.map((answer, at) => {
              const isResent = nodes[at]?.driver.changes() !== before[at];
              const isDoubtful = answer?.type === "absent" && (doubtful.has(at) || isResent);
              return isDoubtful ? { type: "released" } : answer;
            }),
          ),
        onAnswer: (answer, at, isLate) => {
          const node = nodes[at];
          if (isLate && answer.type === "error" && node) {
            this.#withdrawals.retry(node, keys, args, claim.ttlMs);
          }
        },
      });
      const judgement = await poll.judged;
      if (judgement !== "silent" && judgement !== null) return judgement;
      for (const [at, answer] of poll.answers.entries()) {
        if (answer?.type === "time_out" || answer?.type === "error") doubtful.add(at);
      }
      const pauseMs = RETRY_MS * (failures + 1);
      if (clock.nowMs() + pauseMs >= untilMs) {
        const about = { lockName: claim.name, outcome: "unknown" } as const;
        throw quorumError(nodes, poll.answers, about);
      }
      await this.#pause(pauseMs);
    }
  }

  /** Whatever node does not vote is let in again when that is due, whoever met it. */
  #notice(answer: Vote | NodeRenewal | Failure): void {
    if (answer.type !== "asleep" || this.#isClosed) return;
    if (answer.why === "unmarked" || answer.why === "unfloored") this.#membership.onSleeper();
  }

  /** A revocation may have gone unheard while the node was out of hearing. */
  async #lookAfter(grant: RedlockGrant, at: number): Promise<void> {
    try {
      const raw = await this.#nodes[at]?.ask(grant.keys, ["look"]);
      const [, , text] = raw as readonly unknown[];
      const { owner } = grant.claim;
      const [, revoked, reason = ""] = /^\d+ V (\S+) (.*)$/s.exec(String(text)) ?? [];
      if (revoked === owner) this.#onRevoked(at, owner, `${grant.token}`, reason);
    } catch {
      // It was only a look: renewals ask, too.
    }
  }

  /** Told by so many nodes that it has no majority any more. */
  #onRevoked(at: number, owner: string, token: string, reason: string): void {
    const grant = this.#grants.get(owner);
    if (grant?.token !== BigInt(token)) return;
    grant.revokedBy.add(at);
    const { length } = this.#nodes;
    if (grant.revokedBy.size <= length - majorityOf(length)) return;
    this.#grants.delete(owner);
    this.#onGone({ type: "gone", grant, reason: "revoked", detail: reason });
    // The acquisition may be so fresh that nobody keeps it yet.
    grant.deadlineMs = Number.NEGATIVE_INFINITY;
  }

  /** Acquisitions of one lock share one frozen object: its text is made once. */
  #metaText(meta: Meta): string {
    if (meta !== this.#lastMeta) {
      this.#lastMeta = meta;
      this.#lastMetaText = JSON.stringify(meta);
    }
    return this.#lastMetaText;
  }

  #pause(delayMs: number): Promise<void> {
    return new Promise((resume) => this.port.timers.after(delayMs, resume, true));
  }
}

function lossOf(
  answers: readonly (NodeRenewal | Failure | undefined)[],
): Pick<GoneEvent, "reason" | "detail"> {
  for (const answer of answers) {
    if (answer?.type === "revoked") return { reason: "revoked", detail: answer.reason };
  }
  const isReplaced = answers.some((answer) => answer?.type === "replaced");
  return { reason: isReplaced ? "replaced" : "missing", detail: "" };
}
