/** Parts of replies and pushes, as sql/replies.sql writes them. All throw `Unreadable`. */
import { list, oneOf, text, whole } from "../../events/foreign-data.js";
import type {
  HolderEntry,
  MarkEntry,
  PushedGrant,
  View,
  WaiterEntry,
} from "../../rules/ledger-command.js";
import { fromStored } from "./stored-text.js";

export function readView([holders, waiters, left]: readonly unknown[]): View {
  return {
    type: "view",
    holders: list(holders).map((holder) => readHolder(list(holder))),
    waiters: list(waiters).map((waiter) => readWaiter(list(waiter))),
    mark: left === null ? null : readMark(list(left)),
  };
}

export function readBlockage(value: unknown): { holder: HolderEntry | null; dueUs: number } {
  const fields = list(value);
  const dueUs = signed(fields[0]);
  return { holder: fields.length === 1 ? null : readHolder(fields), dueUs };
}

function readHolder(fields: readonly unknown[]): HolderEntry {
  const [remainingUs, token, span, mode, weight, limit, heldUs, meta] = fields;
  return {
    token: whole(token),
    span: whole(span),
    mode: MODES[oneOf(["x", "s"], mode)],
    weight: whole(weight),
    limit: whole(limit),
    meta: readText(meta),
    heldUs: signed(heldUs),
    remainingUs: signed(remainingUs),
  };
}

const MODES = { x: "exclusive", s: "shared" } as const;

function readWaiter([mode, weight, limit, waitedUs, meta]: readonly unknown[]): WaiterEntry {
  return {
    mode: MODES[oneOf(["x", "s"], mode)],
    weight: whole(weight),
    limit: whole(limit),
    meta: readText(meta),
    waitedUs: signed(waitedUs),
  };
}

export function readGrant([
  owner,
  token,
  span,
  grantedUs,
  expiryUs,
]: readonly unknown[]): PushedGrant {
  return {
    owner: readText(owner),
    token: whole(token),
    span: whole(span),
    grantedUs: whole(grantedUs),
    expiryUs: whole(expiryUs),
  };
}

export function readMark([token, remainingUs, meta]: readonly unknown[]): MarkEntry {
  return { token: whole(token), remainingUs: whole(remainingUs), meta: readText(meta) };
}

export function readText(value: unknown): string {
  return fromStored(text(value));
}

export function readFlag(value: unknown): boolean {
  return oneOf([true, false], value);
}

/** A difference of two times: it is negative where the server's clock went back. */
function signed(value: unknown): number {
  return Number(value) < 0 ? -whole(-Number(value)) : whole(value);
}
