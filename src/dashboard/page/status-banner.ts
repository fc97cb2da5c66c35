import type { LiveMessage } from "../message.js";
import type { LinkState } from "./live.js";
import { type Element, html } from "./preact.js";
import { foreign, time } from "./text.js";

/** Says why nothing new is shown, and what to do about it; null while all is well. */
export function statusBanner(message: LiveMessage | null, link: LinkState): Element | null {
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

function refused(status: number, problem: string): Element {
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
