import type { LossReason } from "../errors.js";
import type { Hold, Tenant } from "../lease/hold.js";
import type { Grant, RenewalReport } from "../store.js";
import { copyOfError } from "./error-copy.js";
import type { FromThread, GrantCopy } from "./messages.js";
import type { Outbox } from "./outbox.js";
import { SharedDeadline } from "./shared-deadline.js";

/** A grant in the thread of its store: tells the thread of the caller what becomes of it. */
export class KeptGrant implements Tenant {
  readonly id: number;
  readonly grant: Grant;
  /** Set as soon as the grant is kept. */
  hold: Hold | null = null;
  readonly lease = null;
  readonly #deadline: SharedDeadline;
  readonly #outbox: Outbox<FromThread>;
  readonly #onEnd: (kept: KeptGrant) => void;

  constructor(
    id: number,
    grant: Grant,
    outbox: Outbox<FromThread>,
    onEnd: (kept: KeptGrant) => void,
  ) {
    this.id = id;
    this.grant = grant;
    this.#deadline = SharedDeadline.of(grant);
    this.#outbox = outbox;
    this.#onEnd = onEnd;
  }

  get copy(): GrantCopy {
    const { type, claim, token, span, locator, isHandoff = false } = this.grant;
    const deadline = this.#deadline.memory;
    return { type, grant: this.id, claim, token, span, locator, isHandoff, deadline };
  }

  /** The caller compares the deadline with the same clock, and needs no word. */
  onWarning(): void {}

  onRenewal({ error, ...report }: RenewalReport): void {
    const sent = error === undefined ? report : { ...report, error: copyOfError(error) };
    this.#outbox.post({ type: "renewal", grant: this.id, report: sent });
  }

  onLost(reason: LossReason, detail: string): void {
    this.#outbox.post({ type: "gone", grant: this.id, reason, detail });
    // The message first: a caller that sees the end in shared memory finds the reason in its port.
    this.#outbox.flush();
    this.#deadline.end();
    this.#onEnd(this);
  }
}
