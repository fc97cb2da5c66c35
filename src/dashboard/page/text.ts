import { type Element, html } from "./preact.js";

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** `850 ms`, `4.2 s`, `3 m 5 s`, `2 h 10 m`, `3 d 4 h`. */
export function duration(durationMs: number): string {
  const ms = Math.max(0, durationMs);
  if (ms < SECOND_MS) return `${Math.round(ms)} ms`;
  if (ms < 10 * SECOND_MS) return `${(ms / SECOND_MS).toFixed(1).replace(/\.0$/, "")} s`;
  if (ms < MINUTE_MS) return `${Math.floor(ms / SECOND_MS)} s`;
  if (ms < HOUR_MS) return pair(ms, MINUTE_MS, "m", SECOND_MS, "s");
  if (ms < DAY_MS) return pair(ms, HOUR_MS, "h", MINUTE_MS, "m");
  return pair(ms, DAY_MS, "d", HOUR_MS, "h");
}

function pair(ms: number, large: number, of: string, small: number, rest: string): string {
  const parts = Math.floor((ms % large) / small);
  return `${Math.floor(ms / large)} ${of}${parts > 0 ? ` ${parts} ${rest}` : ""}`;
}

/** `14:03:05`, with the day where it is not today. */
export function time(at: number): string {
  const date = new Date(at);
  const clock = date.toTimeString().slice(0, 8);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? clock : `${date.toLocaleDateString("sv")} ${clock}`;
}

export function count(value: number, one: string, many: string = `${one}s`): string {
  return `${value.toLocaleString("en")} ${value === 1 ? one : many}`;
}

/** Characters that hide, break a line or change the order in which a text is read. */
const STEERING = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** The text with such characters spelt out: another program may have chosen it to deceive. */
export function visible(text: string): string {
  return text.replace(STEERING, (letter) => {
    return `\\u{${(letter.codePointAt(0) ?? 0).toString(16)}}`;
  });
}

/** A text of another program: it never becomes markup and does not reorder the text around it. */
export function foreign(text: string): Element {
  return html`<bdi class="foreign">${visible(text)}</bdi>`;
}
