import { takeToken } from "./api.js";
import { doctorPage } from "./doctor-page.js";
import { leasesPage } from "./leases-page.js";
import { follow } from "./live.js";
import { LockPage } from "./lock-page.js";
import { LocksPage } from "./locks-page.js";
import { html, render, useEffect, useRef, useState } from "./preact.js";
import { queryOf, routeOf } from "./route.js";
import { foreign, time, visible } from "./text.js";

const MAX_POINTS = 360;
function titleOf(route) {
  if (route.page === "lock") return visible(route.name);
  return { locks: "Locks", leases: "Leases of this process", doctor: "Doctor" }[route.page];
}
function merged(points, news) {
  const [first] = news;
  if (!first) return points;
  return [...points.filter(({ at }) => at < first.at), ...news].slice(-MAX_POINTS);
}
function App() {
  const [route, setRoute] = useState(() => routeOf(location.hash));
  const [message, setMessage] = useState(null);
  const [points, setPoints] = useState([]);
  const [link, setLink] = useState({ is: "opening" });
  const [isPaused, setPaused] = useState(false);
  const [isHidden, setHidden] = useState(document.hidden);
  const [news, setNews] = useState("");
  const heading = useRef(null);
  const query = queryOf(route);
  const title = titleOf(route);
  useEffect(() => {
    const onAddress = () => {
      takeToken();
      setRoute(routeOf(location.hash));
    };
    const onVisibility = () => setHidden(document.hidden);
    addEventListener("hashchange", onAddress);
    document.addEventListener("visibilitychange", onVisibility);
    return () => {
      removeEventListener("hashchange", onAddress);
      document.removeEventListener("visibilitychange", onVisibility);
    };
  }, []);
  const isLive = !isPaused && !isHidden;
  useEffect(() => {
    if (!isLive) return;
    const ended = new AbortController();
    const onMessage = (next) => {
      setMessage(next);
      setPoints((before) => merged(before, next.points));
    };
    void follow(query, ended.signal, onMessage, setLink);
    return () => ended.abort();
  }, [query, isLive]);
  const isFirst = useRef(true);
  useEffect(() => {
    document.title = `${title} · ${message?.title ?? "Holdfast"}`;
  }, [title, message?.title]);
  useEffect(() => {
    if (!isFirst.current) heading.current?.focus();
    isFirst.current = false;
  }, [title]);
  const store = message?.store.is;
  useEffect(() => {
    if (store === "away") setNews("The store is away.");
    else if (store === "here") setNews((text) => (text === "" ? "" : "The store is back."));
  }, [store]);
  return html`
    <a class="skip" href="#main" onClick=${(event) => {
      event.preventDefault();
      heading.current?.focus();
    }}>Skip to the content</a>
    ${header({ route, message, link, isPaused, setPaused })}
    <main id="main" aria-labelledby="title">
      <h1 id="title" tabindex="-1" ref=${heading}><bdi class="foreign">${title}</bdi></h1>
      ${statusBanner(message, link)}
      ${page(route, message, points, setNews)}
    </main>
    <div class="unseen" role="status" aria-live="polite">${news}</div>
  `;
}
function page(route, message, points, announce) {
  if (route.page === "doctor") return html`<${doctorPage} />`;
  if (route.page === "leases") return leasesPage(message?.leases, points);
  if (route.page === "lock") {
    const key = `${route.space}/${route.name}`;
    return html`<${LockPage} key=${key} route=${route} message=${message} announce=${announce} />`;
  }
  return html`<${LocksPage} route=${route} message=${message} points=${points}
    announce=${announce} />`;
}
takeToken();
const app = document.getElementById("app");
if (app) {
  app.replaceChildren();
  render(html`<${App} />`, app);
}
const PAGES = [
  ["#/", "Locks", ["locks", "lock"]],
  ["#/leases", "Leases", ["leases"]],
  ["#/doctor", "Doctor", ["doctor"]],
];
function header({ route, message, link, isPaused, setPaused }) {
  const isHere = (pages) => pages.includes(route.page);
  return html`
    <header class="top">
      <a class="brand" href="#/"><img src="icon.svg" alt="" width="26" height="26" />
        ${foreign(message?.title ?? "Holdfast")}</a>
      <nav aria-label="Pages">
        ${PAGES.map(([address, name, pages]) => {
          return html`<a href=${address} aria-current=${isHere(pages) ? "page" : null}>${name}</a>`;
        })}
      </nav>
      <div class="live">
        <span class=${`lamp ${lampOf(message, link, isPaused)}`}></span>
        <span>${stateText(message, link, isPaused)}</span>
        <button type="button" class="quiet" aria-pressed=${isPaused ? "true" : "false"}
          onClick=${() => setPaused(!isPaused)}>Pause</button>
      </div>
    </header>
  `;
}
function lampOf(message, link, isPaused) {
  if (isPaused) return "off";
  if (link.is === "broken" || link.is === "refused") return "bad";
  if (!message || message.store.is === "asked") return "off";
  return message.store.is === "away" ? "bad" : "good";
}
function stateText(message, link, isPaused) {
  const at = message && message.at > 0 ? ` ${time(message.at)}` : "";
  if (isPaused) return `Paused${at}`;
  if (link.is === "refused") return "Refused";
  if (link.is === "broken") return `Disconnected${at}`;
  if (!message || message.store.is === "asked") return "Connecting";
  return message.store.is === "away" ? `Store away${at}` : `Live${at}`;
}
function statusBanner(message, link) {
  if (link.is === "refused") return refused(link.status, link.problem);
  if (link.is === "broken") {
    return html`<section class="banner bad" aria-label="Connection">
      <h2>The dashboard does not answer</h2>
      <p>The page tries again by itself. Is the process that serves the dashboard still running?
        A new <code>holdfast dashboard</code> prints a new URL: open that one.</p>
    </section>`;
  }
  if (message?.store.is !== "away") return null;
  const { problem, since } = message.store;
  return html`<section class="banner bad" aria-label="Store">
    <h2>The store is away since ${time(since)}</h2>
    <p class="problem">${foreign(problem)}</p>
    <ul>
      <li>Locks that are held stay held until their deadlines; without renewals they are lost then.
        Processes that wait go on waiting until their time is over.</li>
      <li>Look at the server: does it run, can this host reach it, does it take the password?</li>
      <li>The dashboard goes on asking. ${
        message.at > 0
          ? html`The page shows the store as it was at ${time(message.at)}.`
          : "The store has not answered yet."
      }</li>
    </ul>
  </section>`;
}
function refused(status, problem) {
  const advice =
    status === 401
      ? html`<p>
          Open the whole URL that <code>holdfast dashboard</code> printed: the part after the sign #
          is the key, and each start has a new one. Where the dashboard is part of an application,
          log in there.
        </p>`
      : null;
  return html`<section class="banner bad" aria-label="Access">
    <h2>The dashboard refused this page</h2>
    <p class="problem">${foreign(problem)}</p>
    ${advice}
  </section>`;
}
