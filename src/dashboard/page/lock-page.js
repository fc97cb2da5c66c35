import { html, useState } from "./preact.js";
import { RevokeDialog } from "./revoke-dialog.js";
import { count, duration, foreign, time } from "./text.js";
export function LockPage({ route, message, announce }) {
  const [target, setTarget] = useState(null);
  const lock = message?.lock;
  const isThis = lock?.name === route.name && lock.space === route.space;
  if (!lock || !isThis) return html`<p class="note">No answer of the store yet.</p>`;
  const { holders, holderCount, waiters, waiterCount, mark } = lock;
  const revoke = message.mayRevoke ? (token) => setTarget({ token }) : null;
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
function tokensOf({ holders, mark }) {
  return [...holders.map(({ token }) => token), ...(mark ? [mark.token] : [])];
}
function kindText({ space, kind }) {
  return kind === space ? `Kind: ${kind}` : `Kind: ${space}, ${kind}`;
}
function rest(left, what) {
  return left > 0 ? html`<p class="note">and ${count(left, `more ${what}`)}</p>` : null;
}
function holderCard(holder, revoke) {
  const { token, mode, weight, heldMs, remainingMs, isLate } = holder;
  const since = `${time(Date.now() - heldMs)} (${duration(heldMs)})`;
  return html`<article class="card" key=${token}>
    ${whoList(holder, [
      ["Since", since],
      ["Expires in", duration(remainingMs)],
      ["Token", token],
      ...(mode === "shared" ? [["Mode", "shared"]] : []),
      ...(weight > 1 ? [["Weight", `${weight}`]] : []),
    ])}
    ${isLate && html`<p class="tag warn">A renewal is late: half of its time is over.</p>`}
    ${revoke && revokeButton(token, revoke)}
  </article>`;
}
function revokeButton(token, revoke) {
  return html`<p>
    <button type="button" class="danger" onClick=${() => revoke(token)}>Revoke this lease…</button>
  </p>`;
}
function whoList(who, facts) {
  const { label, host, pid, more } = who;
  const named = [
    ["Label", label],
    ["Host", host],
    ["Process", pid],
  ];
  const known = named.filter(([, text]) => text !== "");
  return html`<dl class="facts">
    ${known.map(([key, text]) => fact(key, foreign(text)))}
    ${facts.map(([key, text]) => fact(key, text))}
    ${more.map(([key, text]) => fact(foreign(key), foreign(text)))}
  </dl>`;
}
function fact(key, text) {
  return html`<div><dt>${key}</dt><dd>${text}</dd></div>`;
}
function note(text) {
  return html`<p class="note">${text}</p>`;
}
function queue(waiters) {
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
function placeOf(host, pid) {
  return [host === "" ? "" : `on ${host}`, pid === "" ? "" : `(pid ${pid})`].join(" ").trim();
}
const WORDS = {
  granted: "granted to",
  ended: "ended (released, handed on or revoked):",
  expired: "expired, as it was not renewed:",
  revoked: "revoked by",
};
function changeTable(changes) {
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
function changeRow({ at, what, token, who }) {
  const tone = what === "expired" || what === "revoked" ? "bad-text" : "";
  return html`<tr>
    <td>${time(at)}</td>
    <td><span class=${tone}>${WORDS[what]}</span> ${foreign(who || "unnamed")}</td>
    <td class="number">${token}</td>
  </tr>`;
}
