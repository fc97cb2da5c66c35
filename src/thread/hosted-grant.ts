import type { Grant, RenewalReport } from "../contract/store.js";
import type { LossReason } from "../errors/index.js";
import type { GrantUser, HeldGrant } from "../lease/held-grant.js";
import type { Limited } from "../time/limits.js";
import { copyOfError } from "./error-copy.js";
import type { FromThread, GrantCopy } from "./messages.js";
import type { Outbox } from "./outbox.js";
import { SharedGrant } from "./shared-grant.js";

/** The part of the thread that keeps grants. */
export interface HostedGrantOwner {
  /** It is time to look whether the caller has taken the grant. */
  onLook(hosted: HostedGrant): void;
  /** The grant is lost. */
  onEnd(hosted: HostedGrant): void;
}

/** A grant in the thread of its store: tells the thread of the caller what becomes of it. */
export class HostedGrant implements GrantUser, Limited {
  readonly id: number;
  readonly grant: Grant;
  /** Set as soon as the grant is kept. */
  held: HeldGrant | null = null;
  readonly lease = null;
  /** When to look whether the caller has taken it. */
  dueMs = 0;
  heapIndex = -1;
  readonly #shared: SharedGrant;
  readonly #outbox: Outbox<FromThread>;
  readonly #owner: HostedGrantOwner;

  constructor(id: number, grant: Grant, outbox: Outbox<FromThread>, owner: HostedGrantOwner) {
    this.id = id;
    this.grant = grant;
    this.#shared = SharedGrant.of(grant);
    this.#outbox = outbox;
    this.#owner = owner;
  }

  get copy(): GrantCopy {
    const { type, claim, token, span, locator, isHandoff = false } = this.grant;
    const { owner } = claim;
    const { memory } = this.#shared;
    return { type, grant: this.id, owner, token, span, locator, isHandoff, memory };
  }

  get taken(): SharedGrant["taken"] {
    return this.#shared.taken;
  }

  onDue(): void {
    this.#owner.onLook(this);
  }

  /** The caller compares the deadline with the same clock, and needs no word. */
  onWarning(): void {}

  onRenewal({ error, ...report }: RenewalReport): void {
    const sent = error === undefined ? report : { ...report, error: copyOfError(error) };
    this.#outbox.offer({ type: "renewal", grant: this.id, report: sent });
  }

  onLost(reason: LossReason, detail: string): void {
    this.#outbox.post({ type: "gone", grant: this.id, reason, detail });
    // The message first: a caller that sees the end in shared memory finds the reason in its port.
    this.#outbox.flush();
    this.#shared.end();
    this.#owner.onEnd(this);
  }
}
