import type { LiveMessage } from "../message.js";
import type { LinkState } from "./live.js";
import { type Element, html } from "./preact.js";
import type { Route } from "./route.js";
import { foreign, time } from "./text.js";

export interface HeaderState {
  readonly route: Route;
  readonly message: LiveMessage | null;
  readonly link: LinkState;
  readonly isPaused: boolean;
  readonly setPaused: (isPaused: boolean) => void;
}

const PAGES = [
  ["#/", "Locks", ["locks", "lock"]],
  ["#/leases", "Leases", ["leases"]],
  ["#/doctor", "Doctor", ["doctor"]],
] as const;

export function header({ route, message, link, isPaused, setPaused }: HeaderState): Element {
  const isHere = (pages: readonly string[]): boolean => pages.includes(route.page);
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

function lampOf(message: LiveMessage | null, link: LinkState, isPaused: boolean): string {
  if (isPaused) return "off";
  if (link.is === "broken" || link.is === "refused") return "bad";
  if (!message || message.store.is === "asked") return "off";
  return message.store.is === "away" ? "bad" : "good";
}

function stateText(message: LiveMessage | null, link: LinkState, isPaused: boolean): string {
  const at = message && message.at > 0 ? ` ${time(message.at)}` : "";
  if (isPaused) return `Paused${at}`;
  if (link.is === "refused") return "Refused";
  if (link.is === "broken") return `Disconnected${at}`;
  if (!message || message.store.is === "asked") return "Connecting";
  return message.store.is === "away" ? `Store away${at}` : `Live${at}`;
}
