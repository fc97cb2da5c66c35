import { assert } from "../assert.js";
import type { Claim, Grant } from "../store.js";
import type { GrantCopy } from "./messages.js";
import { SharedDeadline } from "./shared-deadline.js";

/** A grant in the thread of the caller: its deadline is in shared memory. */
export class ThreadGrant implements Grant {
  readonly type = "granted";
  readonly claim: Claim;
  readonly token: bigint;
  readonly span: number;
  readonly locator: string | null;
  readonly isHandoff: boolean;
  /** The number of the grant in the thread of the store. */
  readonly number: number;
  readonly #deadline: SharedDeadline;

  constructor({ grant, claim, token, span, locator, isHandoff, deadline }: GrantCopy) {
    this.number = grant;
    this.claim = claim;
    this.token = token;
    this.span = span;
    this.locator = locator;
    this.isHandoff = isHandoff;
    this.#deadline = new SharedDeadline(deadline);
  }

  get deadlineMs(): number {
    return this.#deadline.ms;
  }

  /** The thread of the store knows that the grant is gone. */
  get isOver(): boolean {
    return this.#deadline.isOver;
  }
}

/** The grant as a store in a thread made it: a store is given its own grants only. */
export function threadGrant(grant: Grant): ThreadGrant {
  assert(grant instanceof ThreadGrant, "a store is given its own grants only");
  return grant;
}
