import { chart } from "./chart.js";
import { lockTable } from "./lock-table.js";
import { html, useEffect, useRef, useState } from "./preact.js";
import { addressOf } from "./route.js";
import { count, duration } from "./text.js";

const TYPING_MS = 250;
const PAGE_SIZE = 100;
const lostOf = ({ lost }) => Object.values(lost).reduce((sum, one) => sum + one, 0);
const LOSSES = [
  { label: "Expired in the store", tone: "bad", value: (point) => point.expired },
  { label: "Revoked here", tone: "three", value: (point) => point.revoked },
  { label: "Lost by this process", tone: "one", value: lostOf },
];
export function LocksPage({ route, message, points, announce }) {
  const totals = message?.totals;
  return html`
    ${totals && tiles(totals)}
    <section class="charts" aria-label="The last hour">
      ${chart({
        title: "Longest wait",
        points,
        series: [{ label: "Wait", tone: "one", value: (point) => point.longestWaitMs }],
        show: duration,
      })}
      ${chart({
        title: "Waiters",
        points,
        series: [{ label: "Waiters", tone: "two", value: (point) => point.waiters }],
      })}
      ${chart({
        title: "Contended locks",
        points,
        series: [{ label: "Locks", tone: "three", value: (point) => point.contended }],
      })}
      ${chart({ title: "Lost leases", points, series: LOSSES, headline: "sum" })}
    </section>
    <section aria-labelledby="list">
      <div class="bar">
        <h2 id="list">Locks by longest wait</h2>
        <${Search} route=${route} message=${message} announce=${announce} />
      </div>
      ${
        totals?.isPartial &&
        html`<p class="note">There are more locks than one look takes in. The
        search finds only those that are shown; <code>holdfast list PREFIX</code> finds all.</p>`
      }
      ${message?.page ? list(route, message.page) : html`<p class="note">No answer yet.</p>`}
    </section>
  `;
}
function tiles({ locks, held, waiters, contended, longestWaitMs, late }) {
  const all = [
    ["In use", locks.toLocaleString("en"), `${held.toLocaleString("en")} held`],
    ["Waiters", waiters.toLocaleString("en"), `at ${count(contended, "lock")}`],
    ["Longest wait", waiters > 0 ? duration(longestWaitMs) : "none", ""],
    ["Late renewals", late.toLocaleString("en"), late > 0 ? "their leases may be lost" : ""],
  ];
  return html`<dl class="tiles">
    ${all.map(([name, value, more]) => {
      const text = html`<strong>${value}</strong> <span>${more}</span>`;
      return html`<div><dt>${name}</dt><dd>${text}</dd></div>`;
    })}
  </dl>`;
}
function Search({ route, message, announce }) {
  const [text, setText] = useState(route.prefix);
  const field = useRef(null);
  const go = (prefix, space) => {
    location.replace(addressOf({ page: "locks", prefix, space, offset: 0 }));
  };
  useEffect(() => setText(route.prefix), [route.prefix]);
  useEffect(() => {
    if (text === route.prefix) return;
    const timer = setTimeout(() => go(text, route.space), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  useEffect(() => {
    const onKey = (event) => {
      const isTyping =
        event.target instanceof HTMLElement &&
        event.target.closest("input, textarea, select, dialog");
      if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      field.current?.focus();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const total = message?.page?.total;
  const told = useRef(route.prefix + route.space);
  useEffect(() => {
    const asked = route.prefix + route.space;
    if (total === undefined || told.current === asked) return;
    told.current = asked;
    announce(`${count(total, "lock")} found.`);
  }, [message]);
  return html`<form class="search" role="search" onSubmit=${(event) => {
    event.preventDefault();
    go(text, route.space);
  }}>
    <label class="search-label" for="prefix">Name begins with</label>
    <input id="prefix" type="search" autocomplete="off" spellcheck=${false} maxlength="512"
      aria-keyshortcuts="/" placeholder="press / to search" ref=${field} value=${text}
      onInput=${(event) => setText(event.target.value)} />
    <label class="search-label" for="space">Kind</label>
    <select id="space" value=${route.space}
      onChange=${(event) => go(text, event.target.value)}>
      <option value="">all</option>
      <option value="lock">lock</option>
      <option value="election">election</option>
      <option value="once">once</option>
    </select>
  </form>`;
}
function list(route, { rows, offset, total }) {
  return html`${lockTable(rows)}${pager(route, offset, total)}`;
}
function shown(value) {
  return value.toLocaleString("en");
}
function pager(route, offset, total) {
  if (total <= PAGE_SIZE) return null;
  const to = (at) => addressOf({ ...route, offset: at });
  const last = Math.floor((total - 1) / PAGE_SIZE) * PAGE_SIZE;
  const link = (name, at, isPossible) =>
    isPossible
      ? html`<a class="button" href=${to(at)}>${name}</a>`
      : html`<span class="button off" aria-disabled="true">${name}</span>`;
  const end = Math.min(offset + PAGE_SIZE, total);
  return html`<nav class="pager" aria-label="Pages of the list">
    ${link("First", 0, offset > 0)}
    ${link("Previous", offset - PAGE_SIZE, offset > 0)}
    <span>${shown(offset + 1)} to ${shown(end)} of ${shown(total)}</span>
    ${link("Next", offset + PAGE_SIZE, end < total)}
    ${link("Last", last, end < total)}
  </nav>`;
}
