/**
 * A revocation by the page. The audit has a line before it, without which nothing is revoked, and
 * one with its outcome: a process that dies between the two leaves the first.
 */

import { nameProblem, SPACES, type Space } from "../rules/name.js";
import { reasonProblem } from "../rules/reason.js";
import type { RevokeAnswer } from "./message.js";
import type { ShownLocks } from "./options.js";

/** One line of the audit. */
export interface AuditLine {
  /** The time, as ISO 8601. */
  readonly at: string;
  /** The name that `authorize` gave. */
  readonly actor: string;
  /** The only action so far. */
  readonly action: "revoke";
  /** Tells a lock from an election and a once of the same name. */
  readonly space: Space;
  /** The name of the lock. */
  readonly name: string;
  /** The token of the lease, as decimal text. */
  readonly token: string;
  /** The reason as it was typed. The holder also reads the actor. */
  readonly reason: string;
  /**
   * `asked`: it begins now. `revoked`: done. `not_held`: that lease was over already. `failed`: the
   * store did not answer, and the lease may have ended or not.
   */
  readonly outcome: "asked" | "revoked" | "not_held" | "failed";
}

/** The request is wrong; the message says why. */
export class BadRequestError extends Error {}

/** The audit refused the line, so nothing was revoked. */
export class AuditError extends Error {}

type Order = Pick<AuditLine, "space" | "name" | "token" | "reason">;

/** Ends a lease and tells the audit. Throws the error of the store where it did not answer. */
export async function revokeAudited(
  locks: ShownLocks,
  order: Order,
  actor: string,
  tell: (line: AuditLine) => void | Promise<void>,
  now: () => Date,
): Promise<RevokeAnswer> {
  const { space, name, token } = order;
  const reason = withActor(order.reason, actor);
  const line = (outcome: AuditLine["outcome"]): AuditLine => ({
    at: now().toISOString(),
    actor,
    action: "revoke",
    ...order,
    outcome,
  });
  try {
    await tell(line("asked"));
  } catch (error) {
    throw new AuditError("The audit took no line, so nothing was revoked.", { cause: error });
  }
  const told = async (outcome: AuditLine["outcome"]): Promise<boolean> => {
    try {
      await tell(line(outcome));
      return true;
    } catch {
      // The revocation has happened, or may have: the answer says that its line is missing.
      return false;
    }
  };
  let isDone: boolean;
  try {
    isDone = await locks.revoke(name, { token: BigInt(token), reason }, space);
  } catch (error) {
    await told("failed");
    throw error;
  }
  const outcome = isDone ? "revoked" : "not_held";
  return { outcome, isAudited: await told(outcome) };
}

/** The order of a request's body. Throws `BadRequestError`. */
export function parseOrder(text: string): Order {
  const { space, name, token, reason } = parsed(text);
  const known = SPACES.find((one) => one === space);
  if (!known) throw new BadRequestError("The space must be lock, election or once.");
  const wrongName = nameProblem(name);
  if (wrongName || typeof name !== "string") throw new BadRequestError(`The name ${wrongName}.`);
  if (typeof token !== "string" || !/^\d{1,39}$/.test(token)) {
    throw new BadRequestError("The token must be a number, as text.");
  }
  if (typeof reason !== "string" || reason.trim() === "") {
    throw new BadRequestError("The reason must say why: the holder reads it.");
  }
  return { space: known, name, token, reason: reason.trim() };
}

/** The holder reads who revoked it. */
function withActor(reason: string, actor: string): string {
  const text = `${reason} (by ${actor})`;
  const problem = reasonProblem(text);
  if (problem) throw new BadRequestError(`The reason, with your name, ${problem}.`);
  return text;
}

function parsed(text: string): Partial<Record<keyof Order, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value;
  } catch {}
  throw new BadRequestError("The body must be a JSON object.");
}
