import { ask } from "./api.js";
import { html, useEffect, useState } from "./preact.js";
import { count, foreign, time } from "./text.js";

const ORDER = ["danger", "warning", "note", "skipped", "ok"];
export function doctorPage() {
  const [answer, setAnswer] = useState(null);
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const examine = async () => {
    setBusy(true);
    try {
      setAnswer(await (await ask("findings")).json());
      setProblem("");
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
    setBusy(false);
  };
  useEffect(() => {
    void examine();
    return;
  }, []);
  const cases = answer?.examination.failureCases ?? [];
  return html`
    <p>
      <button type="button" disabled=${isBusy} onClick=${examine}>
        ${isBusy ? "Examining…" : "Examine again"}
      </button>
      ${answer && examined(answer)}
    </p>
    ${problem !== "" && failed(problem)}
    ${answer && findings(answer.examination.findings)}
    ${cases.length > 0 && failureCases(cases)}
  `;
}
function examined({ at, examination }) {
  const { store } = examination;
  return html`<span class="note"> ${foreign(store)}, examined at ${time(at)}</span>`;
}
function failed(problem) {
  return html`<section class="banner bad" aria-label="Doctor">
    <h2>The store could not be examined</h2>
    <p class="problem">${foreign(problem)}</p>
  </section>`;
}
function findings(all) {
  const sorted = [...all].sort((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity));
  const bad = all.filter(({ severity }) => severity === "danger" || severity === "warning").length;
  const heading =
    bad === 0 ? "Nothing to mend was found" : count(bad, "thing to mend", "things to mend");
  return html`<section aria-labelledby="findings">
    <h2 id="findings">${heading}</h2>
    <ul class="findings">${sorted.map(item)}</ul>
  </section>`;
}
function item({ id, severity, what, why, remedy }) {
  return html`<li class=${`severity-${severity}`}>
    <p>
      <span class=${`tag ${severity}`}>${severity}</span> ${foreign(what)}${" "}
      <code class="faint">${id}</code>
    </p>
    ${why && html`<p>${foreign(why)}</p>`}
    ${remedy && html`<p><strong>Remedy:</strong> ${foreign(remedy)}</p>`}
  </li>`;
}
function failureCases(all) {
  return html`<section aria-labelledby="failure-cases">
    <h2 id="failure-cases">Consequences of failures in this deployment</h2>
    <div class="scroll"><table>
      <thead><tr>
        <th scope="col">Event</th>
        <th scope="col">Outcome</th>
        <th scope="col">One holder at most</th>
      </tr></thead>
      <tbody>${all.map(caseRow)}</tbody>
    </table></div>
  </section>`;
}
function caseRow({ event, outcome, isSafe }) {
  return html`<tr>
    <th scope="row">${foreign(event)}</th>
    <td>${foreign(outcome)}</td>
    <td><span class=${`tag ${isSafe ? "ok" : "danger"}`}>${isSafe ? "yes" : "no"}</span></td>
  </tr>`;
}
