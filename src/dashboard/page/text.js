import { html } from "./preact.js";

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
export function duration(durationMs) {
  const ms = Math.max(0, durationMs);
  if (ms < SECOND_MS) return `${Math.round(ms)} ms`;
  if (ms < 10 * SECOND_MS) return `${(ms / SECOND_MS).toFixed(1).replace(/\.0$/, "")} s`;
  if (ms < MINUTE_MS) return `${Math.floor(ms / SECOND_MS)} s`;
  if (ms < HOUR_MS) return pair(ms, MINUTE_MS, "m", SECOND_MS, "s");
  if (ms < DAY_MS) return pair(ms, HOUR_MS, "h", MINUTE_MS, "m");
  return pair(ms, DAY_MS, "d", HOUR_MS, "h");
}
function pair(ms, large, of, small, rest) {
  const parts = Math.floor((ms % large) / small);
  return `${Math.floor(ms / large)} ${of}${parts > 0 ? ` ${parts} ${rest}` : ""}`;
}
export function time(at) {
  const date = new Date(at);
  const clock = date.toTimeString().slice(0, 8);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? clock : `${date.toLocaleDateString("sv")} ${clock}`;
}
export function count(value, one, many = `${one}s`) {
  return `${value.toLocaleString("en")} ${value === 1 ? one : many}`;
}
const STEERING = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
export function visible(text) {
  return text.replace(STEERING, (letter) => {
    return `\\u{${(letter.codePointAt(0) ?? 0).toString(16)}}`;
  });
}
export function foreign(text) {
  return html`<bdi class="foreign">${visible(text)}</bdi>`;
}
