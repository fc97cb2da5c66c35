import type { LiveMessage, Point } from "../message.js";
import { takeToken } from "./api.js";
import { doctorPage } from "./doctor-page.js";
import { header } from "./header.js";
import { leasesPage } from "./leases-page.js";
import { follow, type LinkState } from "./live.js";
import { LockPage } from "./lock-page.js";
import { LocksPage } from "./locks-page.js";
import { type Element, html, render, useEffect, useRef, useState } from "./preact.js";
import { queryOf, type Route, routeOf } from "./route.js";
import { statusBanner } from "./status-banner.js";
import { visible } from "./text.js";

const MAX_POINTS = 360;

/** A page is read by its heading first. */
function titleOf(route: Route): string {
  if (route.page === "lock") return visible(route.name);
  return { locks: "Locks", leases: "Leases of this process", doctor: "Doctor" }[route.page];
}

function merged(points: readonly Point[], news: readonly Point[]): readonly Point[] {
  const [first] = news;
  if (!first) return points;
  return [...points.filter(({ at }) => at < first.at), ...news].slice(-MAX_POINTS);
}

function App(): Element {
  const [route, setRoute] = useState(() => routeOf(location.hash));
  const [message, setMessage] = useState<LiveMessage | null>(null);
  const [points, setPoints] = useState<readonly Point[]>([]);
  const [link, setLink] = useState<LinkState>({ is: "opening" });
  const [isPaused, setPaused] = useState(false);
  const [isHidden, setHidden] = useState(document.hidden);
  const [news, setNews] = useState("");
  const heading = useRef<HTMLElement | null>(null);
  const query = queryOf(route);
  const title = titleOf(route);

  useEffect(() => {
    const onAddress = (): void => {
      takeToken();
      setRoute(routeOf(location.hash));
    };
    const onVisibility = (): void => setHidden(document.hidden);
    addEventListener("hashchange", onAddress);
    document.addEventListener("visibilitychange", onVisibility);
    return () => {
      removeEventListener("hashchange", onAddress);
      document.removeEventListener("visibilitychange", onVisibility);
    };
  }, []);

  // A page that cannot be seen does not let the dashboard look at the store.
  const isLive = !isPaused && !isHidden;
  useEffect(() => {
    if (!isLive) return;
    const ended = new AbortController();
    const onMessage = (next: LiveMessage): void => {
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
    <a class="skip" href="#main" onClick=${(event: Event) => {
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

function page(
  route: Route,
  message: LiveMessage | null,
  points: readonly Point[],
  announce: (news: string) => void,
): Element {
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
