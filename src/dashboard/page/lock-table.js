import { html } from "./preact.js";
import { addressOfLock } from "./route.js";
import { duration, foreign } from "./text.js";
export function lockTable(rows) {
  if (rows.length === 0) {
    return html`<p class="note">No lock is in use that fits the search.</p>`;
  }
  return html`<div class="scroll"><table class="locks">
    <caption class="unseen">Locks, those with the longest wait first</caption>
    <thead><tr>
      <th scope="col">Name</th>
      <th scope="col" class="number">Longest wait</th>
      <th scope="col" class="number">Waiters</th>
      <th scope="col" class="wide">Holder</th>
      <th scope="col" class="number wide">Held for</th>
      <th scope="col" class="number wide">Expires in</th>
      <th scope="col" class="wide">Kind</th>
    </tr></thead>
    <tbody>${rows.map(row)}</tbody>
  </table></div>`;
}
function row(lock) {
  const {
    space,
    name,
    kind,
    holder,
    holders,
    waiters,
    longestWaitMs,
    heldMs,
    remainingMs,
    isLate,
  } = lock;
  const more = holders > 1 ? ` and ${holders - 1} more` : "";
  const held = html`${holderOf(holders, holder)}${more}`;
  return html`<tr key=${`${space}/${name}`}>
    <th scope="row">
      <a href=${addressOfLock(lock)}>${foreign(name)}</a>
      <span class="narrow">${isLate && lateTag()} ${held}</span>
    </th>
    <td class="number">${waiters > 0 ? duration(longestWaitMs) : faint("-")}</td>
    <td class="number">${waiters > 0 ? waiters.toLocaleString("en") : faint("0")}</td>
    <td class="wide">${held}</td>
    <td class="number wide">${heldMs === null ? "" : duration(heldMs)}</td>
    <td class="number wide">${remainingMs === null ? "" : duration(remainingMs)}
      ${isLate && lateTag()}</td>
    <td class="wide">${kind}</td>
  </tr>`;
}
function holderOf(holders, holder) {
  if (holders > 0) return holder === "" ? faint("unnamed") : foreign(holder);
  if (holder !== "") return html`${faint("done by ")}${foreign(holder)}`;
  return faint("free");
}
function lateTag() {
  return html` <span class="tag warn">late</span>`;
}
function faint(text) {
  return html`<span class="faint">${text}</span>`;
}
