import { chart } from "./chart.js";
import { html } from "./preact.js";
import { duration, foreign } from "./text.js";
export function leasesPage(leases, points) {
  if (!leases) return html`<p class="note">No answer of the dashboard yet.</p>`;
  const reasons = [...new Set(points.flatMap(({ lost }) => Object.keys(lost)))];
  return html`
    <p class="note">
      The process that serves this page, and no other. A <code>holdfast dashboard</code> holds${" "}
      nothing itself; mounted in an application, the page shows the leases of that application.
    </p>
    <section class="charts" aria-label="The last hour">
      ${chart({
        title: "Failed renewals",
        points,
        series: [{ label: "Renewals", tone: "three", value: (point) => point.failedRenewals }],
        headline: "sum",
      })}
      ${reasons.map((reason) => {
        const value = ({ lost }) => lost[reason] ?? 0;
        const series = [{ label: reason, tone: "bad", value }];
        return chart({ title: `Lost: ${reason}`, points, series, headline: "sum" });
      })}
    </section>
    ${leases.length === 0 ? html`<p class="note">This process holds no lease.</p>` : table(leases)}
  `;
}
function table(leases) {
  return html`<div class="scroll"><table>
    <caption class="unseen">Leases of this process</caption>
    <thead><tr>
      <th scope="col">Name</th>
      <th scope="col">State</th>
      <th scope="col" class="number">Expires in</th>
      <th scope="col" class="number wide">Token</th>
    </tr></thead>
    <tbody>${leases.map(
      ({ name, token, state, remainingMs }) => html`<tr key=${`${token} ${name}`}>
      <th scope="row">${foreign(name)}</th>
      <td>${state}</td>
      <td class="number">${duration(remainingMs)}</td>
      <td class="number wide">${token}</td>
    </tr>`,
    )}</tbody>
  </table></div>`;
}
