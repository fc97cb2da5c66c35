import type {
  Change,
  HolderDetail,
  LiveMessage,
  LockDetail,
  MetaView,
  WaiterDetail,
} from "../message.js";
import { type Child, type Element, html, useState } from "./preact.js";
import { RevokeDialog } from "./revoke-dialog.js";
import type { Route } from "./route.js";
import { count, duration, foreign, time } from "./text.js";

export interface LockState {
  readonly route: Extract<Route, { page: "lock" }>;
  readonly message: LiveMessage | null;
  readonly announce: (news: string) => void;
}

export function LockPage({ route, message, announce }: LockState): Element {
  const [target, setTarget] = useState<{ token: string } | null>(null);
  const lock = message?.lock;
  const isThis = lock?.name === route.name && lock.space === route.space;
  if (!lock || !isThis) return html`<p class="note">No answer of the store yet.</p>`;
  const { holders, holderCount, waiters, waiterCount, mark } = lock;
  const revoke = message.mayRevoke ? (token: string) => setTarget({ token }) : null;
  const isFree = holderCount === 0 && !mark;
  return html`
    <p class="note">${kindText(lock)} · <a href="#/">all locks</a></p>
    <section aria-labelledby="holders">
      <h2 id="holders">${holderCount === 1 ? "Holder" : `Holders (${holderCount})`}</h2>
      ${isFree && html`<p class="note">The lock is free.</p>`}
      ${
        mark &&
        html`<article class="card">${whoList(mark, [
          ["Work", "done"],
          ["Remembered for", duration(mark.remainingMs)],
          ["Token", mark.token],
        ])}${revoke && revokeButton(mark.token, revoke)}</article>`
      }
      <div class="cards">${holders.map((holder) => holderCard(holder, revoke))}</div>
      ${rest(holderCount - holders.length, "holder")}
    </section>
    <section aria-labelledby="queue">
      <h2 id="queue">Queue (${waiterCount})</h2>
      ${waiterCount === 0 ? note("No process waits, or the store does not tell.") : queue(waiters)}
      ${rest(waiterCount - waiters.length, "waiter")}
    </section>
    <section aria-labelledby="history">
      <h2 id="history">Seen while a dashboard was open</h2>
      ${lock.changes.length === 0 ? note("No change was seen yet.") : changeTable(lock.changes)}
    </section>
    ${
      target &&
      html`<${RevokeDialog} lock=${lock} token=${target.token} actor=${message.actor}
        isCurrent=${tokensOf(lock).includes(target.token)} announce=${announce}
        onClose=${() => setTarget(null)} />`
    }
  `;
}

function tokensOf({ holders, mark }: LockDetail): string[] {
  return [...holders.map(({ token }) => token), ...(mark ? [mark.token] : [])];
}

function kindText({ space, kind }: LockDetail): string {
  return kind === space ? `Kind: ${kind}` : `Kind: ${space}, ${kind}`;
}

function rest(left: number, what: string): Element | null {
  return left > 0 ? html`<p class="note">and ${count(left, `more ${what}`)}</p>` : null;
}

function holderCard(holder: HolderDetail, revoke: ((token: string) => void) | null): Element {
  const { token, mode, weight, heldMs, remainingMs, isLate } = holder;
  const since = `${time(Date.now() - heldMs)} (${duration(heldMs)})`;
  return html`<article class="card" key=${token}>
    ${whoList(holder, [
      ["Since", since],
      ["Expires in", duration(remainingMs)],
      ["Token", token],
      ...(mode === "shared" ? ([["Mode", "shared"]] as const) : []),
      ...(weight > 1 ? ([["Weight", `${weight}`]] as const) : []),
    ])}
    ${isLate && html`<p class="tag warn">A renewal is late: half of its time has passed.</p>`}
    ${revoke && revokeButton(token, revoke)}
  </article>`;
}

function revokeButton(token: string, revoke: (token: string) => void): Element {
  return html`<p>
    <button type="button" class="danger" onClick=${() => revoke(token)}>Revoke this lease…</button>
  </p>`;
}

function whoList(who: MetaView, facts: readonly (readonly [string, string])[]): Element {
  const { label, host, pid, more } = who;
  const named = [
    ["Label", label],
    ["Host", host],
    ["Process", pid],
  ] as const;
  const known = named.filter(([, text]) => text !== "");
  return html`<dl class="facts">
    ${known.map(([key, text]) => fact(key, foreign(text)))}
    ${facts.map(([key, text]) => fact(key, text))}
    ${more.map(([key, text]) => fact(foreign(key), foreign(text)))}
  </dl>`;
}

function fact(key: Child, text: Child): Element {
  return html`<div><dt>${key}</dt><dd>${text}</dd></div>`;
}

function note(text: string): Element {
  return html`<p class="note">${text}</p>`;
}

function queue(waiters: readonly WaiterDetail[]): Element {
  return html`<div class="scroll"><table>
    <caption class="unseen">Waiters in the order in which they are served</caption>
    <thead><tr>
      <th scope="col" class="number first">Place</th>
      <th scope="col" class="number">Waits for</th>
      <th scope="col">Label</th>
      <th scope="col" class="wide">Host</th>
      <th scope="col" class="number wide">Process</th>
      <th scope="col" class="wide">Mode</th>
    </tr></thead>
    <tbody>${waiters.map(
      ({ label, host, pid, mode, weight, waitedMs }, index) => html`<tr>
      <td class="number">${index + 1}</td>
      <td class="number">${duration(waitedMs)}</td>
      <td>${foreign(label)} <span class="narrow">${foreign(placeOf(host, pid))}</span></td>
      <td class="wide">${foreign(host)}</td>
      <td class="number wide">${foreign(pid)}</td>
      <td class="wide">${mode}${weight > 1 ? `, weight ${weight}` : ""}</td>
    </tr>`,
    )}</tbody>
  </table></div>`;
}

function placeOf(host: string, pid: string): string {
  return [host === "" ? "" : `on ${host}`, pid === "" ? "" : `(pid ${pid})`].join(" ").trim();
}

const WORDS: Readonly<Record<Change["what"], string>> = {
  granted: "granted to",
  ended: "ended (released, handed on or revoked):",
  expired: "expired, as it was not renewed:",
  revoked: "revoked by",
};

function changeTable(changes: readonly Change[]): Element {
  return html`<div class="scroll"><table>
    <caption class="unseen">Changes of this lock, newest first</caption>
    <thead><tr>
      <th scope="col" class="first">Time</th>
      <th scope="col">Change</th>
      <th scope="col" class="number">Token</th>
    </tr></thead>
    <tbody>${changes.map(changeRow)}</tbody>
  </table></div>`;
}

function changeRow({ at, what, token, who }: Change): Element {
  const tone = what === "expired" || what === "revoked" ? "bad-text" : "";
  return html`<tr>
    <td>${time(at)}</td>
    <td><span class=${tone}>${WORDS[what]}</span> ${foreign(who || "unnamed")}</td>
    <td class="number">${token}</td>
  </tr>`;
}
