import type { Meta } from "../contract/store.js";
import type { MetaView } from "./message.js";

/** Meta is written by other programs and may be long; the page shows its beginning. */
const MAX_TEXT = 400;
const MAX_FIELDS = 24;

/** The meta as text: it may be any JSON. */
export function whoOf({ label, host, pid, ...more }: Meta): MetaView {
  const fields = Object.entries(more).slice(0, MAX_FIELDS);
  return {
    label: textOf(label),
    host: textOf(host),
    pid: textOf(pid),
    more: fields.map(([key, value]) => [cut(key), textOf(value)] as const),
  };
}

/** `backup.sh on web1 (pid 4711)`; empty where the meta says nothing. */
export function nameOf({ label, host, pid }: Meta): string {
  const where = host === undefined ? "" : `on ${textOf(host)}`;
  const process = pid === undefined ? "" : `(pid ${textOf(pid)})`;
  return [textOf(label), where, process].filter(Boolean).join(" ");
}

function textOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  return cut(typeof value === "string" ? value : (JSON.stringify(value) ?? ""));
}

function cut(text: string): string {
  return text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT)}…`;
}
