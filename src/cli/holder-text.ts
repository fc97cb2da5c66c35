import type { LockView, Meta } from "../contract/store.js";
import type { Deadlock } from "../locks/deadlocks.js";
import { formatDuration } from "./duration.js";

/** The holder of a lock, as far as it is known. */
interface Holder {
  readonly token: bigint;
  readonly meta: Meta;
  readonly heldMs: number;
}

/** `backup.sh on web1 (pid 4711)`; meta of other programs may lack any part. */
export function whoIs(meta: Meta): string {
  const { label, host, pid } = meta;
  const where = host === undefined ? "" : `on ${textOf(host)}`;
  const process = pid === undefined ? "" : `(pid ${textOf(pid)})`;
  const who = [label === undefined ? "" : textOf(label), where, process].filter(Boolean).join(" ");
  return who === "" ? "an unnamed holder" : who;
}

/**
 * `held by backup.sh on web1 (pid 4711) since 14:03:05 (2m 3s), reason: nightly, token 17`. A
 * narrow terminal cuts the line, so the token, which few need, comes last.
 */
export function heldBy({ token, meta, heldMs }: Holder): string {
  const since = `since ${sinceText(heldMs)} (${formatDuration(heldMs)})`;
  return `held by ${whoIs(meta)} ${since}${reasonOf(meta)}, token ${token}`;
}

/** `, reason: nightly`, or nothing. */
export function reasonOf({ reason }: Meta): string {
  return reason === undefined ? "" : `, reason: ${textOf(reason)}`;
}

export function sinceText(heldMs: number): string {
  const since = new Date(Date.now() - heldMs);
  const time = since.toTimeString().slice(0, 8);
  return heldMs < 43_200_000 ? time : `${since.toISOString().slice(0, 10)} ${time}`;
}

/** The queue position of this process, from 1; null if it is not in the queue. */
export function placeOf({ waiters }: LockView, host: string, pid: number): number | null {
  const index = waiters.findIndex(({ meta }) => meta.host === host && meta.pid === pid);
  return index < 0 ? null : index + 1;
}

/** Meta that another program wrote may be any JSON. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** One deadlock as text: a line for each lease, in the order in which they wait. */
export function deadlockText({ steps }: Deadlock): string[] {
  const count = steps.length;
  const what = count === 1 ? "a lease waits for itself" : `${count} leases wait for each other`;
  const lines = steps.map(({ name, token, meta, waitsFor }) => {
    const by = `${whoIs(meta)}${reasonOf(meta)}, token ${token}`;
    return `  ${name}: held by ${by}, waits for ${waitsFor}`;
  });
  return [`Deadlock: ${what}. To end it, revoke one of them.`, ...lines];
}
