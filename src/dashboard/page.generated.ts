// Written by `npm run page` from page/*: change those, and run it.
export const FILES: ReadonlyMap<string, string> = new Map([
  ["api.js", `const STORED = "holdfast-dashboard-token";
const FRAGMENT = /^#token=([\\w-]+)$/;
export class RefusedError extends Error {
    status;
    constructor(status, message) {
        super(message);
        this.status = status;
    }
}
export function takeToken() {
    const token = FRAGMENT.exec(location.hash)?.[1];
    if (token === undefined)
        return;
    sessionStorage.setItem(STORED, token);
    history.replaceState(null, "", "#/");
}
export async function ask(path, options = {}) {
    const headers = new Headers(options.headers);
    headers.set("x-holdfast-dashboard", "1");
    const token = sessionStorage.getItem(STORED);
    if (token !== null)
        headers.set("authorization", \`Bearer \${token}\`);
    const response = await fetch(\`api/\${path}\`, { ...options, headers });
    if (response.ok)
        return response;
    throw new RefusedError(response.status, await problemOf(response));
}
async function problemOf(response) {
    try {
        return (await response.json()).error;
    }
    catch {
        return \`The dashboard answered with status \${response.status}.\`;
    }
}
`],
  ["chart.js", `import { html } from "./preact.js";
import { duration, time } from "./text.js";
const POINT_MS = 10_000;
const WIDTH = 300;
const HEIGHT = 56;
const MIN_POINTS = 30;
export function chart(options) {
    const { title, points, series, headline = "now" } = options;
    const { show = (value) => value.toLocaleString("en") } = options;
    const sumOf = (point) => series.reduce((sum, { value }) => sum + value(point), 0);
    const most = points.reduce((top, point) => Math.max(top, sumOf(point)), 0);
    const last = points.at(-1)?.at ?? 0;
    const first = Math.min(points[0]?.at ?? 0, last - (MIN_POINTS - 1) * POINT_MS);
    const slots = (last - first) / POINT_MS + 1;
    const step = WIDTH / slots;
    const bars = most === 0
        ? []
        : points.flatMap((point) => {
            let base = HEIGHT;
            return series.flatMap(({ tone, value }) => {
                const amount = value(point);
                if (amount === 0)
                    return [];
                const height = Math.max(1.5, (amount / most) * (HEIGHT - 2));
                base -= height;
                const x = ((point.at - first) / POINT_MS) * step;
                const width = Math.max(0.5, step * 0.86);
                const tones = \`tone-\${tone}\`;
                return html \`<rect class=\${tones} x=\${x} y=\${base} width=\${width} height=\${height} />\`;
            });
        });
    const counted = headline === "now" ? points.slice(-1) : points;
    const head = show(counted.reduce((sum, point) => sum + sumOf(point), 0));
    const span = duration(last - first + POINT_MS);
    return html \`<figure class="chart">
    <figcaption><span>\${title}</span><strong>\${head}</strong></figcaption>
    <svg viewBox=\${\`0 0 \${WIDTH} \${HEIGHT}\`} preserveAspectRatio="none" role="img"
      aria-label=\${\`\${title}: \${headline} \${head}, at most \${show(most)} in the last \${span}\`}>
      <line class="axis" x1="0" x2=\${WIDTH} y1=\${HEIGHT - 0.5} y2=\${HEIGHT - 0.5} />
      \${bars}
    </svg>
    <div class="scale" aria-hidden="true">
      <span>\${points.length > 0 ? time(first).slice(0, -3) : ""}</span>
      <span>\${most > 0 ? \`most \${show(most)}\` : "none so far"}</span>
    </div>
    \${series.length > 1 && legend(series, points)}
  </figure>\`;
}
function legend(series, points) {
    return html \`<ul class="legend">
    \${series.map(({ label, tone, value }) => {
        const total = points.reduce((sum, point) => sum + value(point), 0);
        return html \`<li><span class=\${\`swatch tone-\${tone}\`}></span>\${label}: \${total}</li>\`;
    })}
  </ul>\`;
}
`],
  ["doctor-page.js", `import { ask } from "./api.js";
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
            setAnswer((await (await ask("findings")).json()));
            setProblem("");
        }
        catch (error) {
            setProblem(error instanceof Error ? error.message : String(error));
        }
        setBusy(false);
    };
    useEffect(() => {
        void examine();
        return;
    }, []);
    return html \`
    <p>
      <button type="button" disabled=\${isBusy} onClick=\${examine}>
        \${isBusy ? "Examining…" : "Examine again"}
      </button>
      \${answer && examined(answer)}
    </p>
    \${problem !== "" && failed(problem)}
    \${answer && findings(answer.examination.findings)}
    \${answer && answer.examination.survivals.length > 0 && survivals(answer.examination.survivals)}
  \`;
}
function examined({ at, examination }) {
    const { store } = examination;
    return html \`<span class="note"> \${foreign(store)}, examined at \${time(at)}</span>\`;
}
function failed(problem) {
    return html \`<section class="banner bad" aria-label="Doctor">
    <h2>The store could not be examined</h2>
    <p class="problem">\${foreign(problem)}</p>
  </section>\`;
}
function findings(all) {
    const sorted = [...all].sort((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity));
    const bad = all.filter(({ severity }) => severity === "danger" || severity === "warning").length;
    const heading = bad === 0 ? "Nothing to mend was found" : count(bad, "thing to mend", "things to mend");
    return html \`<section aria-labelledby="findings">
    <h2 id="findings">\${heading}</h2>
    <ul class="findings">\${sorted.map(item)}</ul>
  </section>\`;
}
function item({ id, severity, what, why, remedy }) {
    return html \`<li class=\${\`severity-\${severity}\`}>
    <p>
      <span class=\${\`tag \${severity}\`}>\${severity}</span> \${foreign(what)}\${" "}
      <code class="faint">\${id}</code>
    </p>
    \${why && html \`<p>\${foreign(why)}</p>\`}
    \${remedy && html \`<p><strong>Remedy:</strong> \${foreign(remedy)}</p>\`}
  </li>\`;
}
function survivals(all) {
    return html \`<section aria-labelledby="survivals">
    <h2 id="survivals">Consequences of failures in this deployment</h2>
    <div class="scroll"><table>
      <thead><tr>
        <th scope="col">Event</th>
        <th scope="col">Outcome</th>
        <th scope="col">One holder at most</th>
      </tr></thead>
      <tbody>\${all.map(survivalRow)}</tbody>
    </table></div>
  </section>\`;
}
function survivalRow({ event, outcome, isSafe }) {
    return html \`<tr>
    <th scope="row">\${foreign(event)}</th>
    <td>\${foreign(outcome)}</td>
    <td><span class=\${\`tag \${isSafe ? "ok" : "danger"}\`}>\${isSafe ? "yes" : "no"}</span></td>
  </tr>\`;
}
`],
  ["header.js", `import { html } from "./preact.js";
import { foreign, time } from "./text.js";
const PAGES = [
    ["#/", "Locks", ["locks", "lock"]],
    ["#/leases", "Leases", ["leases"]],
    ["#/doctor", "Doctor", ["doctor"]],
];
export function header({ route, message, link, isPaused, setPaused }) {
    const isHere = (pages) => pages.includes(route.page);
    return html \`
    <header class="top">
      <a class="brand" href="#/"><img src="icon.svg" alt="" width="26" height="26" />
        \${foreign(message?.title ?? "Holdfast")}</a>
      <nav aria-label="Pages">
        \${PAGES.map(([address, name, pages]) => {
        return html \`<a href=\${address} aria-current=\${isHere(pages) ? "page" : null}>\${name}</a>\`;
    })}
      </nav>
      <div class="live">
        <span class=\${\`lamp \${lampOf(message, link, isPaused)}\`}></span>
        <span>\${stateText(message, link, isPaused)}</span>
        <button type="button" class="quiet" aria-pressed=\${isPaused ? "true" : "false"}
          onClick=\${() => setPaused(!isPaused)}>Pause</button>
      </div>
    </header>
  \`;
}
function lampOf(message, link, isPaused) {
    if (isPaused)
        return "off";
    if (link.is === "broken" || link.is === "refused")
        return "bad";
    if (!message || message.store.is === "asked")
        return "off";
    return message.store.is === "away" ? "bad" : "good";
}
function stateText(message, link, isPaused) {
    const at = message && message.at > 0 ? \` \${time(message.at)}\` : "";
    if (isPaused)
        return \`Paused\${at}\`;
    if (link.is === "refused")
        return "Refused";
    if (link.is === "broken")
        return \`Disconnected\${at}\`;
    if (!message || message.store.is === "asked")
        return "Connecting";
    return message.store.is === "away" ? \`Store away\${at}\` : \`Live\${at}\`;
}
`],
  ["icon.svg", `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
  <title>Holdfast</title>
  <rect width="32" height="32" rx="7" fill="#0b62c4"/>
  <path d="M10 15v-3a6 6 0 0 1 12 0v3" fill="none" stroke="#fff" stroke-width="3"/>
  <rect x="7.5" y="14.5" width="17" height="11" rx="2.5" fill="#fff"/>
</svg>
`],
  ["index.html", `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>Holdfast</title>
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <link rel="icon" href="icon.svg" type="image/svg+xml">
    <link rel="stylesheet" href="style.css">
    <script type="module" src="main.js"></script>
  </head>
  <body>
    <div id="app"><p class="boot">The dashboard is loading. It needs JavaScript.</p></div>
  </body>
</html>
`],
  ["leases-page.js", `import { chart } from "./chart.js";
import { html } from "./preact.js";
import { duration, foreign } from "./text.js";
export function leasesPage(leases, points) {
    if (!leases)
        return html \`<p class="note">No answer of the dashboard yet.</p>\`;
    const reasons = [...new Set(points.flatMap(({ lost }) => Object.keys(lost)))];
    return html \`
    <p class="note">
      The process that serves this page, and no other. A <code>holdfast dashboard</code> holds\${" "}
      nothing itself; mounted in an application, the page shows the leases of that application.
    </p>
    <section class="charts" aria-label="The last hour">
      \${chart({
        title: "Failed renewals",
        points,
        series: [{ label: "Renewals", tone: "three", value: (point) => point.failedRenewals }],
        headline: "sum",
    })}
      \${reasons.map((reason) => {
        const value = ({ lost }) => lost[reason] ?? 0;
        const series = [{ label: reason, tone: "bad", value }];
        return chart({ title: \`Lost: \${reason}\`, points, series, headline: "sum" });
    })}
    </section>
    \${leases.length === 0 ? html \`<p class="note">This process holds no lease.</p>\` : table(leases)}
  \`;
}
function table(leases) {
    return html \`<div class="scroll"><table>
    <caption class="unseen">Leases of this process</caption>
    <thead><tr>
      <th scope="col">Name</th>
      <th scope="col">State</th>
      <th scope="col" class="number">Expires in</th>
      <th scope="col" class="number wide">Token</th>
    </tr></thead>
    <tbody>\${leases.map(({ name, token, state, remainingMs }) => html \`<tr key=\${\`\${token} \${name}\`}>
      <th scope="row">\${foreign(name)}</th>
      <td>\${state}</td>
      <td class="number">\${duration(remainingMs)}</td>
      <td class="number wide">\${token}</td>
    </tr>\`)}</tbody>
  </table></div>\`;
}
`],
  ["licences.txt", `The file preact.js contains Preact and htm. Their licences follow.

Preact

The MIT License (MIT)

Copyright (c) 2015-present Jason Miller

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

htm


                                 Apache License
                           Version 2.0, January 2004
                        http://www.apache.org/licenses/

   TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION

   1. Definitions.

      "License" shall mean the terms and conditions for use, reproduction,
      and distribution as defined by Sections 1 through 9 of this document.

      "Licensor" shall mean the copyright owner or entity authorized by
      the copyright owner that is granting the License.

      "Legal Entity" shall mean the union of the acting entity and all
      other entities that control, are controlled by, or are under common
      control with that entity. For the purposes of this definition,
      "control" means (i) the power, direct or indirect, to cause the
      direction or management of such entity, whether by contract or
      otherwise, or (ii) ownership of fifty percent (50%) or more of the
      outstanding shares, or (iii) beneficial ownership of such entity.

      "You" (or "Your") shall mean an individual or Legal Entity
      exercising permissions granted by this License.

      "Source" form shall mean the preferred form for making modifications,
      including but not limited to software source code, documentation
      source, and configuration files.

      "Object" form shall mean any form resulting from mechanical
      transformation or translation of a Source form, including but
      not limited to compiled object code, generated documentation,
      and conversions to other media types.

      "Work" shall mean the work of authorship, whether in Source or
      Object form, made available under the License, as indicated by a
      copyright notice that is included in or attached to the work
      (an example is provided in the Appendix below).

      "Derivative Works" shall mean any work, whether in Source or Object
      form, that is based on (or derived from) the Work and for which the
      editorial revisions, annotations, elaborations, or other modifications
      represent, as a whole, an original work of authorship. For the purposes
      of this License, Derivative Works shall not include works that remain
      separable from, or merely link (or bind by name) to the interfaces of,
      the Work and Derivative Works thereof.

      "Contribution" shall mean any work of authorship, including
      the original version of the Work and any modifications or additions
      to that Work or Derivative Works thereof, that is intentionally
      submitted to Licensor for inclusion in the Work by the copyright owner
      or by an individual or Legal Entity authorized to submit on behalf of
      the copyright owner. For the purposes of this definition, "submitted"
      means any form of electronic, verbal, or written communication sent
      to the Licensor or its representatives, including but not limited to
      communication on electronic mailing lists, source code control systems,
      and issue tracking systems that are managed by, or on behalf of, the
      Licensor for the purpose of discussing and improving the Work, but
      excluding communication that is conspicuously marked or otherwise
      designated in writing by the copyright owner as "Not a Contribution."

      "Contributor" shall mean Licensor and any individual or Legal Entity
      on behalf of whom a Contribution has been received by Licensor and
      subsequently incorporated within the Work.

   2. Grant of Copyright License. Subject to the terms and conditions of
      this License, each Contributor hereby grants to You a perpetual,
      worldwide, non-exclusive, no-charge, royalty-free, irrevocable
      copyright license to reproduce, prepare Derivative Works of,
      publicly display, publicly perform, sublicense, and distribute the
      Work and such Derivative Works in Source or Object form.

   3. Grant of Patent License. Subject to the terms and conditions of
      this License, each Contributor hereby grants to You a perpetual,
      worldwide, non-exclusive, no-charge, royalty-free, irrevocable
      (except as stated in this section) patent license to make, have made,
      use, offer to sell, sell, import, and otherwise transfer the Work,
      where such license applies only to those patent claims licensable
      by such Contributor that are necessarily infringed by their
      Contribution(s) alone or by combination of their Contribution(s)
      with the Work to which such Contribution(s) was submitted. If You
      institute patent litigation against any entity (including a
      cross-claim or counterclaim in a lawsuit) alleging that the Work
      or a Contribution incorporated within the Work constitutes direct
      or contributory patent infringement, then any patent licenses
      granted to You under this License for that Work shall terminate
      as of the date such litigation is filed.

   4. Redistribution. You may reproduce and distribute copies of the
      Work or Derivative Works thereof in any medium, with or without
      modifications, and in Source or Object form, provided that You
      meet the following conditions:

      (a) You must give any other recipients of the Work or
          Derivative Works a copy of this License; and

      (b) You must cause any modified files to carry prominent notices
          stating that You changed the files; and

      (c) You must retain, in the Source form of any Derivative Works
          that You distribute, all copyright, patent, trademark, and
          attribution notices from the Source form of the Work,
          excluding those notices that do not pertain to any part of
          the Derivative Works; and

      (d) If the Work includes a "NOTICE" text file as part of its
          distribution, then any Derivative Works that You distribute must
          include a readable copy of the attribution notices contained
          within such NOTICE file, excluding those notices that do not
          pertain to any part of the Derivative Works, in at least one
          of the following places: within a NOTICE text file distributed
          as part of the Derivative Works; within the Source form or
          documentation, if provided along with the Derivative Works; or,
          within a display generated by the Derivative Works, if and
          wherever such third-party notices normally appear. The contents
          of the NOTICE file are for informational purposes only and
          do not modify the License. You may add Your own attribution
          notices within Derivative Works that You distribute, alongside
          or as an addendum to the NOTICE text from the Work, provided
          that such additional attribution notices cannot be construed
          as modifying the License.

      You may add Your own copyright statement to Your modifications and
      may provide additional or different license terms and conditions
      for use, reproduction, or distribution of Your modifications, or
      for any such Derivative Works as a whole, provided Your use,
      reproduction, and distribution of the Work otherwise complies with
      the conditions stated in this License.

   5. Submission of Contributions. Unless You explicitly state otherwise,
      any Contribution intentionally submitted for inclusion in the Work
      by You to the Licensor shall be under the terms and conditions of
      this License, without any additional terms or conditions.
      Notwithstanding the above, nothing herein shall supersede or modify
      the terms of any separate license agreement you may have executed
      with Licensor regarding such Contributions.

   6. Trademarks. This License does not grant permission to use the trade
      names, trademarks, service marks, or product names of the Licensor,
      except as required for reasonable and customary use in describing the
      origin of the Work and reproducing the content of the NOTICE file.

   7. Disclaimer of Warranty. Unless required by applicable law or
      agreed to in writing, Licensor provides the Work (and each
      Contributor provides its Contributions) on an "AS IS" BASIS,
      WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or
      implied, including, without limitation, any warranties or conditions
      of TITLE, NON-INFRINGEMENT, MERCHANTABILITY, or FITNESS FOR A
      PARTICULAR PURPOSE. You are solely responsible for determining the
      appropriateness of using or redistributing the Work and assume any
      risks associated with Your exercise of permissions under this License.

   8. Limitation of Liability. In no event and under no legal theory,
      whether in tort (including negligence), contract, or otherwise,
      unless required by applicable law (such as deliberate and grossly
      negligent acts) or agreed to in writing, shall any Contributor be
      liable to You for damages, including any direct, indirect, special,
      incidental, or consequential damages of any character arising as a
      result of this License or out of the use or inability to use the
      Work (including but not limited to damages for loss of goodwill,
      work stoppage, computer failure or malfunction, or any and all
      other commercial damages or losses), even if such Contributor
      has been advised of the possibility of such damages.

   9. Accepting Warranty or Additional Liability. While redistributing
      the Work or Derivative Works thereof, You may choose to offer,
      and charge a fee for, acceptance of support, warranty, indemnity,
      or other liability obligations and/or rights consistent with this
      License. However, in accepting such obligations, You may act only
      on Your own behalf and on Your sole responsibility, not on behalf
      of any other Contributor, and only if You agree to indemnify,
      defend, and hold each Contributor harmless for any liability
      incurred by, or claims asserted against, such Contributor by reason
      of your accepting any such warranty or additional liability.

   END OF TERMS AND CONDITIONS

   APPENDIX: How to apply the Apache License to your work.

      To apply the Apache License to your work, attach the following
      boilerplate notice, with the fields enclosed by brackets "[]"
      replaced with your own identifying information. (Don't include
      the brackets!)  The text should be enclosed in the appropriate
      comment syntax for the file format. We also recommend that a
      file or class name and description of purpose be included on the
      same "printed page" as the copyright notice for easier
      identification within third-party archives.

   Copyright 2018 Google Inc.

   Licensed under the Apache License, Version 2.0 (the "License");
   you may not use this file except in compliance with the License.
   You may obtain a copy of the License at

       http://www.apache.org/licenses/LICENSE-2.0

   Unless required by applicable law or agreed to in writing, software
   distributed under the License is distributed on an "AS IS" BASIS,
   WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
   See the License for the specific language governing permissions and
   limitations under the License.`],
  ["live.js", `import { ask, RefusedError } from "./api.js";
const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 10_000;
const SILENCE_MS = 90_000;
export async function follow(query, signal, onMessage, onState) {
    let pauseMs = FIRST_PAUSE_MS;
    while (!signal.aborted) {
        try {
            for await (const message of messages(query, signal)) {
                if (signal.aborted)
                    return;
                pauseMs = FIRST_PAUSE_MS;
                onState({ is: "open" });
                onMessage(message);
            }
            continue;
        }
        catch (error) {
            if (signal.aborted)
                return;
            if (error instanceof RefusedError && error.status < 500) {
                onState({ is: "refused", status: error.status, problem: error.message });
                return;
            }
        }
        onState({ is: "broken" });
        await pause(pauseMs, signal);
        pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS);
    }
}
async function* messages(query, signal) {
    const silence = new AbortController();
    const both = AbortSignal.any([signal, silence.signal]);
    let timer = setTimeout(() => silence.abort(), SILENCE_MS);
    try {
        const { body } = await ask(\`live?\${query}\`, { signal: both });
        if (!body)
            return;
        const reader = body.pipeThrough(new TextDecoderStream()).getReader();
        let rest = "";
        for (let part = await reader.read(); !part.done; part = await reader.read()) {
            clearTimeout(timer);
            timer = setTimeout(() => silence.abort(), SILENCE_MS);
            const events = (rest + part.value).split("\\n\\n");
            rest = events.pop() ?? "";
            for (const event of events)
                yield JSON.parse(event.slice("data: ".length));
        }
    }
    finally {
        clearTimeout(timer);
        silence.abort();
    }
}
function pause(durationMs, signal) {
    return new Promise((resolve) => {
        const timer = setTimeout(resolve, durationMs);
        signal.addEventListener("abort", () => {
            clearTimeout(timer);
            resolve();
        });
    });
}
`],
  ["lock-page.js", `import { html, useState } from "./preact.js";
import { RevokeDialog } from "./revoke-dialog.js";
import { count, duration, foreign, time } from "./text.js";
export function LockPage({ route, message, announce }) {
    const [target, setTarget] = useState(null);
    const lock = message?.lock;
    const isThis = lock?.name === route.name && lock.space === route.space;
    if (!lock || !isThis)
        return html \`<p class="note">No answer of the store yet.</p>\`;
    const { holders, holderCount, waiters, waiterCount, mark } = lock;
    const revoke = message.mayRevoke ? (token) => setTarget({ token }) : null;
    const isFree = holderCount === 0 && !mark;
    return html \`
    <p class="note">\${kindText(lock)} · <a href="#/">all locks</a></p>
    <section aria-labelledby="holders">
      <h2 id="holders">\${holderCount === 1 ? "Holder" : \`Holders (\${holderCount})\`}</h2>
      \${isFree && html \`<p class="note">The lock is free.</p>\`}
      \${mark &&
        html \`<article class="card">\${whoList(mark, [
            ["Work", "done"],
            ["Remembered for", duration(mark.remainingMs)],
            ["Token", mark.token],
        ])}\${revoke && revokeButton(mark.token, revoke)}</article>\`}
      <div class="cards">\${holders.map((holder) => holderCard(holder, revoke))}</div>
      \${rest(holderCount - holders.length, "holder")}
    </section>
    <section aria-labelledby="queue">
      <h2 id="queue">Queue (\${waiterCount})</h2>
      \${waiterCount === 0 ? note("No process waits, or the store does not tell.") : queue(waiters)}
      \${rest(waiterCount - waiters.length, "waiter")}
    </section>
    <section aria-labelledby="history">
      <h2 id="history">Seen while a dashboard was open</h2>
      \${lock.changes.length === 0 ? note("No change was seen yet.") : changeTable(lock.changes)}
    </section>
    \${target &&
        html \`<\${RevokeDialog} lock=\${lock} token=\${target.token} actor=\${message.actor}
        isCurrent=\${tokensOf(lock).includes(target.token)} announce=\${announce}
        onClose=\${() => setTarget(null)} />\`}
  \`;
}
function tokensOf({ holders, mark }) {
    return [...holders.map(({ token }) => token), ...(mark ? [mark.token] : [])];
}
function kindText({ space, kind }) {
    return kind === space ? \`Kind: \${kind}\` : \`Kind: \${space}, \${kind}\`;
}
function rest(left, what) {
    return left > 0 ? html \`<p class="note">and \${count(left, \`more \${what}\`)}</p>\` : null;
}
function holderCard(holder, revoke) {
    const { token, mode, weight, heldMs, remainingMs, isLate } = holder;
    const since = \`\${time(Date.now() - heldMs)} (\${duration(heldMs)})\`;
    return html \`<article class="card" key=\${token}>
    \${whoList(holder, [
        ["Since", since],
        ["Expires in", duration(remainingMs)],
        ["Token", token],
        ...(mode === "shared" ? [["Mode", "shared"]] : []),
        ...(weight > 1 ? [["Weight", \`\${weight}\`]] : []),
    ])}
    \${isLate && html \`<p class="tag warn">A renewal is late: half of its time is over.</p>\`}
    \${revoke && revokeButton(token, revoke)}
  </article>\`;
}
function revokeButton(token, revoke) {
    return html \`<p>
    <button type="button" class="danger" onClick=\${() => revoke(token)}>Revoke this lease…</button>
  </p>\`;
}
function whoList(who, facts) {
    const { label, host, pid, more } = who;
    const named = [
        ["Label", label],
        ["Host", host],
        ["Process", pid],
    ];
    const known = named.filter(([, text]) => text !== "");
    return html \`<dl class="facts">
    \${known.map(([key, text]) => fact(key, foreign(text)))}
    \${facts.map(([key, text]) => fact(key, text))}
    \${more.map(([key, text]) => fact(foreign(key), foreign(text)))}
  </dl>\`;
}
function fact(key, text) {
    return html \`<div><dt>\${key}</dt><dd>\${text}</dd></div>\`;
}
function note(text) {
    return html \`<p class="note">\${text}</p>\`;
}
function queue(waiters) {
    return html \`<div class="scroll"><table>
    <caption class="unseen">Waiters in the order in which they are served</caption>
    <thead><tr>
      <th scope="col" class="number first">Place</th>
      <th scope="col" class="number">Waits for</th>
      <th scope="col">Label</th>
      <th scope="col" class="wide">Host</th>
      <th scope="col" class="number wide">Process</th>
      <th scope="col" class="wide">Mode</th>
    </tr></thead>
    <tbody>\${waiters.map(({ label, host, pid, mode, weight, waitedMs }, index) => html \`<tr>
      <td class="number">\${index + 1}</td>
      <td class="number">\${duration(waitedMs)}</td>
      <td>\${foreign(label)} <span class="narrow">\${foreign(placeOf(host, pid))}</span></td>
      <td class="wide">\${foreign(host)}</td>
      <td class="number wide">\${foreign(pid)}</td>
      <td class="wide">\${mode}\${weight > 1 ? \`, weight \${weight}\` : ""}</td>
    </tr>\`)}</tbody>
  </table></div>\`;
}
function placeOf(host, pid) {
    return [host === "" ? "" : \`on \${host}\`, pid === "" ? "" : \`(pid \${pid})\`].join(" ").trim();
}
const WORDS = {
    granted: "granted to",
    ended: "ended (released, handed on or revoked):",
    expired: "expired, as it was not renewed:",
    revoked: "revoked by",
};
function changeTable(changes) {
    return html \`<div class="scroll"><table>
    <caption class="unseen">Changes of this lock, newest first</caption>
    <thead><tr>
      <th scope="col" class="first">Time</th>
      <th scope="col">Change</th>
      <th scope="col" class="number">Token</th>
    </tr></thead>
    <tbody>\${changes.map(changeRow)}</tbody>
  </table></div>\`;
}
function changeRow({ at, what, token, who }) {
    const tone = what === "expired" || what === "revoked" ? "bad-text" : "";
    return html \`<tr>
    <td>\${time(at)}</td>
    <td><span class=\${tone}>\${WORDS[what]}</span> \${foreign(who || "unnamed")}</td>
    <td class="number">\${token}</td>
  </tr>\`;
}
`],
  ["lock-table.js", `import { html } from "./preact.js";
import { addressOfLock } from "./route.js";
import { duration, foreign } from "./text.js";
export function lockTable(rows) {
    if (rows.length === 0) {
        return html \`<p class="note">No lock is in use that fits the search.</p>\`;
    }
    return html \`<div class="scroll"><table class="locks">
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
    <tbody>\${rows.map(row)}</tbody>
  </table></div>\`;
}
function row(lock) {
    const { space, name, kind, holder, holders, waiters, longestWaitMs, heldMs, remainingMs, isLate, } = lock;
    const more = holders > 1 ? \` and \${holders - 1} more\` : "";
    const held = html \`\${holderOf(holders, holder)}\${more}\`;
    return html \`<tr key=\${\`\${space}/\${name}\`}>
    <th scope="row">
      <a href=\${addressOfLock(lock)}>\${foreign(name)}</a>
      <span class="narrow">\${isLate && lateTag()} \${held}</span>
    </th>
    <td class="number">\${waiters > 0 ? duration(longestWaitMs) : faint("-")}</td>
    <td class="number">\${waiters > 0 ? waiters.toLocaleString("en") : faint("0")}</td>
    <td class="wide">\${held}</td>
    <td class="number wide">\${heldMs === null ? "" : duration(heldMs)}</td>
    <td class="number wide">\${remainingMs === null ? "" : duration(remainingMs)}
      \${isLate && lateTag()}</td>
    <td class="wide">\${kind}</td>
  </tr>\`;
}
function holderOf(holders, holder) {
    if (holders > 0)
        return holder === "" ? faint("unnamed") : foreign(holder);
    if (holder !== "")
        return html \`\${faint("done by ")}\${foreign(holder)}\`;
    return faint("free");
}
function lateTag() {
    return html \` <span class="tag warn">late</span>\`;
}
function faint(text) {
    return html \`<span class="faint">\${text}</span>\`;
}
`],
  ["locks-page.js", `import { chart } from "./chart.js";
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
    return html \`
    \${totals && tiles(totals)}
    <section class="charts" aria-label="The last hour">
      \${chart({
        title: "Longest wait",
        points,
        series: [{ label: "Wait", tone: "one", value: (point) => point.longestWaitMs }],
        show: duration,
    })}
      \${chart({
        title: "Waiters",
        points,
        series: [{ label: "Waiters", tone: "two", value: (point) => point.waiters }],
    })}
      \${chart({
        title: "Contended locks",
        points,
        series: [{ label: "Locks", tone: "three", value: (point) => point.contended }],
    })}
      \${chart({ title: "Lost leases", points, series: LOSSES, headline: "sum" })}
    </section>
    <section aria-labelledby="list">
      <div class="bar">
        <h2 id="list">Locks by longest wait</h2>
        <\${Search} route=\${route} message=\${message} announce=\${announce} />
      </div>
      \${totals?.isPartial &&
        html \`<p class="note">There are more locks than one look takes in. The
        search finds only those that are shown; <code>holdfast list PREFIX</code> finds all.</p>\`}
      \${message?.page ? list(route, message.page) : html \`<p class="note">No answer yet.</p>\`}
    </section>
  \`;
}
function tiles({ locks, held, waiters, contended, longestWaitMs, late }) {
    const all = [
        ["In use", locks.toLocaleString("en"), \`\${held.toLocaleString("en")} held\`],
        ["Waiters", waiters.toLocaleString("en"), \`at \${count(contended, "lock")}\`],
        ["Longest wait", waiters > 0 ? duration(longestWaitMs) : "none", ""],
        ["Late renewals", late.toLocaleString("en"), late > 0 ? "their leases may be lost" : ""],
    ];
    return html \`<dl class="tiles">
    \${all.map(([name, value, more]) => {
        const text = html \`<strong>\${value}</strong> <span>\${more}</span>\`;
        return html \`<div><dt>\${name}</dt><dd>\${text}</dd></div>\`;
    })}
  </dl>\`;
}
function Search({ route, message, announce }) {
    const [text, setText] = useState(route.prefix);
    const field = useRef(null);
    const go = (prefix, space) => {
        location.replace(addressOf({ page: "locks", prefix, space, offset: 0 }));
    };
    useEffect(() => setText(route.prefix), [route.prefix]);
    useEffect(() => {
        if (text === route.prefix)
            return;
        const timer = setTimeout(() => go(text, route.space), TYPING_MS);
        return () => clearTimeout(timer);
    }, [text]);
    useEffect(() => {
        const onKey = (event) => {
            const isTyping = event.target instanceof HTMLElement &&
                event.target.closest("input, textarea, select, dialog");
            if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey)
                return;
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
        if (total === undefined || told.current === asked)
            return;
        told.current = asked;
        announce(\`\${count(total, "lock")} found.\`);
    }, [message]);
    return html \`<form class="search" role="search" onSubmit=\${(event) => {
        event.preventDefault();
        go(text, route.space);
    }}>
    <label class="search-label" for="prefix">Name begins with</label>
    <input id="prefix" type="search" autocomplete="off" spellcheck=\${false} maxlength="512"
      aria-keyshortcuts="/" placeholder="press / to search" ref=\${field} value=\${text}
      onInput=\${(event) => setText(event.target.value)} />
    <label class="search-label" for="space">Kind</label>
    <select id="space" value=\${route.space}
      onChange=\${(event) => go(text, event.target.value)}>
      <option value="">all</option>
      <option value="lock">lock</option>
      <option value="election">election</option>
      <option value="once">once</option>
    </select>
  </form>\`;
}
function list(route, { rows, offset, total }) {
    return html \`\${lockTable(rows)}\${pager(route, offset, total)}\`;
}
function shown(value) {
    return value.toLocaleString("en");
}
function pager(route, offset, total) {
    if (total <= PAGE_SIZE)
        return null;
    const to = (at) => addressOf({ ...route, offset: at });
    const last = Math.floor((total - 1) / PAGE_SIZE) * PAGE_SIZE;
    const link = (name, at, isPossible) => isPossible
        ? html \`<a class="button" href=\${to(at)}>\${name}</a>\`
        : html \`<span class="button off" aria-disabled="true">\${name}</span>\`;
    const end = Math.min(offset + PAGE_SIZE, total);
    return html \`<nav class="pager" aria-label="Pages of the list">
    \${link("First", 0, offset > 0)}
    \${link("Previous", offset - PAGE_SIZE, offset > 0)}
    <span>\${shown(offset + 1)} to \${shown(end)} of \${shown(total)}</span>
    \${link("Next", offset + PAGE_SIZE, end < total)}
    \${link("Last", last, end < total)}
  </nav>\`;
}
`],
  ["main.js", `import { takeToken } from "./api.js";
import { doctorPage } from "./doctor-page.js";
import { header } from "./header.js";
import { leasesPage } from "./leases-page.js";
import { follow } from "./live.js";
import { LockPage } from "./lock-page.js";
import { LocksPage } from "./locks-page.js";
import { html, render, useEffect, useRef, useState } from "./preact.js";
import { queryOf, routeOf } from "./route.js";
import { statusBanner } from "./status-banner.js";
import { visible } from "./text.js";
const MAX_POINTS = 360;
function titleOf(route) {
    if (route.page === "lock")
        return visible(route.name);
    return { locks: "Locks", leases: "Leases of this process", doctor: "Doctor" }[route.page];
}
function merged(points, news) {
    const [first] = news;
    if (!first)
        return points;
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
        if (!isLive)
            return;
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
        document.title = \`\${title} · \${message?.title ?? "Holdfast"}\`;
    }, [title, message?.title]);
    useEffect(() => {
        if (!isFirst.current)
            heading.current?.focus();
        isFirst.current = false;
    }, [title]);
    const store = message?.store.is;
    useEffect(() => {
        if (store === "away")
            setNews("The store is away.");
        else if (store === "here")
            setNews((text) => (text === "" ? "" : "The store is back."));
    }, [store]);
    return html \`
    <a class="skip" href="#main" onClick=\${(event) => {
        event.preventDefault();
        heading.current?.focus();
    }}>Skip to the content</a>
    \${header({ route, message, link, isPaused, setPaused })}
    <main id="main" aria-labelledby="title">
      <h1 id="title" tabindex="-1" ref=\${heading}><bdi class="foreign">\${title}</bdi></h1>
      \${statusBanner(message, link)}
      \${page(route, message, points, setNews)}
    </main>
    <div class="unseen" role="status" aria-live="polite">\${news}</div>
  \`;
}
function page(route, message, points, announce) {
    if (route.page === "doctor")
        return html \`<\${doctorPage} />\`;
    if (route.page === "leases")
        return leasesPage(message?.leases, points);
    if (route.page === "lock") {
        const key = \`\${route.space}/\${route.name}\`;
        return html \`<\${LockPage} key=\${key} route=\${route} message=\${message} announce=\${announce} />\`;
    }
    return html \`<\${LocksPage} route=\${route} message=\${message} points=\${points}
    announce=\${announce} />\`;
}
takeToken();
const app = document.getElementById("app");
if (app) {
    app.replaceChildren();
    render(html \`<\${App} />\`, app);
}
`],
  ["preact.js", `// Preact and htm, from htm 3.1.1. Their licences: licences.txt
var e,n,_,t,o,r,u,l={},i=[],c=/acit|ex(?:s|g|n|p|$)|rph|grid|ows|mnc|ntw|ine[ch]|zoo|^ord|itera/i;function s(e,n){for(var _ in n)e[_]=n[_];return e}function f(e){var n=e.parentNode;n&&n.removeChild(e)}function a(n,_,t){var o,r,u,l={};for(u in _)"key"==u?o=_[u]:"ref"==u?r=_[u]:l[u]=_[u];if(arguments.length>2&&(l.children=arguments.length>3?e.call(arguments,2):t),"function"==typeof n&&null!=n.defaultProps)for(u in n.defaultProps)void 0===l[u]&&(l[u]=n.defaultProps[u]);return p(n,l,o,r,null)}function p(e,t,o,r,u){var l={type:e,props:t,key:o,ref:r,__k:null,__:null,__b:0,__e:null,__d:void 0,__c:null,__h:null,constructor:void 0,__v:null==u?++_:u};return null!=n.vnode&&n.vnode(l),l}function h(e){return e.children}function d(e,n){this.props=e,this.context=n}function v(e,n){if(null==n)return e.__?v(e.__,e.__.__k.indexOf(e)+1):null;for(var _;n<e.__k.length;n++)if(null!=(_=e.__k[n])&&null!=_.__e)return _.__e;return"function"==typeof e.type?v(e):null}function y(e){var n,_;if(null!=(e=e.__)&&null!=e.__c){for(e.__e=e.__c.base=null,n=0;n<e.__k.length;n++)if(null!=(_=e.__k[n])&&null!=_.__e){e.__e=e.__c.base=_.__e;break}return y(e)}}function m(e){(!e.__d&&(e.__d=!0)&&t.push(e)&&!g.__r++||r!==n.debounceRendering)&&((r=n.debounceRendering)||o)(g)}function g(){for(var e;g.__r=t.length;)e=t.sort(function(e,n){return e.__v.__b-n.__v.__b}),t=[],e.some(function(e){var n,_,t,o,r,u;e.__d&&(r=(o=(n=e).__v).__e,(u=n.__P)&&(_=[],(t=s({},o)).__v=o.__v+1,P(u,o,t,n.__n,void 0!==u.ownerSVGElement,null!=o.__h?[r]:null,_,null==r?v(o):r,o.__h),D(_,o),o.__e!=r&&y(o)))})}function k(e,n,_,t,o,r,u,c,s,f){var a,d,y,m,g,k,x,H=t&&t.__k||i,E=H.length;for(_.__k=[],a=0;a<n.length;a++)if(null!=(m=_.__k[a]=null==(m=n[a])||"boolean"==typeof m?null:"string"==typeof m||"number"==typeof m||"bigint"==typeof m?p(null,m,null,null,m):Array.isArray(m)?p(h,{children:m},null,null,null):m.__b>0?p(m.type,m.props,m.key,null,m.__v):m)){if(m.__=_,m.__b=_.__b+1,null===(y=H[a])||y&&m.key==y.key&&m.type===y.type)H[a]=void 0;else for(d=0;d<E;d++){if((y=H[d])&&m.key==y.key&&m.type===y.type){H[d]=void 0;break}y=null}P(e,m,y=y||l,o,r,u,c,s,f),g=m.__e,(d=m.ref)&&y.ref!=d&&(x||(x=[]),y.ref&&x.push(y.ref,null,m),x.push(d,m.__c||g,m)),null!=g?(null==k&&(k=g),"function"==typeof m.type&&null!=m.__k&&m.__k===y.__k?m.__d=s=b(m,s,e):s=C(e,m,y,H,g,s),f||"option"!==_.type?"function"==typeof _.type&&(_.__d=s):e.value=""):s&&y.__e==s&&s.parentNode!=e&&(s=v(y))}for(_.__e=k,a=E;a--;)null!=H[a]&&("function"==typeof _.type&&null!=H[a].__e&&H[a].__e==_.__d&&(_.__d=v(t,a+1)),U(H[a],H[a]));if(x)for(a=0;a<x.length;a++)T(x[a],x[++a],x[++a])}function b(e,n,_){var t,o;for(t=0;t<e.__k.length;t++)(o=e.__k[t])&&(o.__=e,n="function"==typeof o.type?b(o,n,_):C(_,o,o,e.__k,o.__e,n));return n}function C(e,n,_,t,o,r){var u,l,i;if(void 0!==n.__d)u=n.__d,n.__d=void 0;else if(null==_||o!=r||null==o.parentNode)e:if(null==r||r.parentNode!==e)e.appendChild(o),u=null;else{for(l=r,i=0;(l=l.nextSibling)&&i<t.length;i+=2)if(l==o)break e;e.insertBefore(o,r),u=r}return void 0!==u?u:o.nextSibling}function x(e,n,_){"-"===n[0]?e.setProperty(n,_):e[n]=null==_?"":"number"!=typeof _||c.test(n)?_:_+"px"}function H(e,n,_,t,o){var r;e:if("style"===n)if("string"==typeof _)e.style.cssText=_;else{if("string"==typeof t&&(e.style.cssText=t=""),t)for(n in t)_&&n in _||x(e.style,n,"");if(_)for(n in _)t&&_[n]===t[n]||x(e.style,n,_[n])}else if("o"===n[0]&&"n"===n[1])r=n!==(n=n.replace(/Capture$/,"")),n=n.toLowerCase()in e?n.toLowerCase().slice(2):n.slice(2),e.l||(e.l={}),e.l[n+r]=_,_?t||e.addEventListener(n,r?S:E,r):e.removeEventListener(n,r?S:E,r);else if("dangerouslySetInnerHTML"!==n){if(o)n=n.replace(/xlink[H:h]/,"h").replace(/sName$/,"s");else if("href"!==n&&"list"!==n&&"form"!==n&&"tabIndex"!==n&&"download"!==n&&n in e)try{e[n]=null==_?"":_;break e}catch(e){}"function"==typeof _||(null!=_&&(!1!==_||"a"===n[0]&&"r"===n[1])?e.setAttribute(n,_):e.removeAttribute(n))}}function E(e){this.l[e.type+!1](n.event?n.event(e):e)}function S(e){this.l[e.type+!0](n.event?n.event(e):e)}function P(e,_,t,o,r,u,l,i,c){var f,a,p,v,y,m,g,b,C,x,H,E=_.type;if(void 0!==_.constructor)return null;null!=t.__h&&(c=t.__h,i=_.__e=t.__e,_.__h=null,u=[i]),(f=n.__b)&&f(_);try{e:if("function"==typeof E){if(b=_.props,C=(f=E.contextType)&&o[f.__c],x=f?C?C.props.value:f.__:o,t.__c?g=(a=_.__c=t.__c).__=a.__E:("prototype"in E&&E.prototype.render?_.__c=a=new E(b,x):(_.__c=a=new d(b,x),a.constructor=E,a.render=A),C&&C.sub(a),a.props=b,a.state||(a.state={}),a.context=x,a.__n=o,p=a.__d=!0,a.__h=[]),null==a.__s&&(a.__s=a.state),null!=E.getDerivedStateFromProps&&(a.__s==a.state&&(a.__s=s({},a.__s)),s(a.__s,E.getDerivedStateFromProps(b,a.__s))),v=a.props,y=a.state,p)null==E.getDerivedStateFromProps&&null!=a.componentWillMount&&a.componentWillMount(),null!=a.componentDidMount&&a.__h.push(a.componentDidMount);else{if(null==E.getDerivedStateFromProps&&b!==v&&null!=a.componentWillReceiveProps&&a.componentWillReceiveProps(b,x),!a.__e&&null!=a.shouldComponentUpdate&&!1===a.shouldComponentUpdate(b,a.__s,x)||_.__v===t.__v){a.props=b,a.state=a.__s,_.__v!==t.__v&&(a.__d=!1),a.__v=_,_.__e=t.__e,_.__k=t.__k,_.__k.forEach(function(e){e&&(e.__=_)}),a.__h.length&&l.push(a);break e}null!=a.componentWillUpdate&&a.componentWillUpdate(b,a.__s,x),null!=a.componentDidUpdate&&a.__h.push(function(){a.componentDidUpdate(v,y,m)})}a.context=x,a.props=b,a.state=a.__s,(f=n.__r)&&f(_),a.__d=!1,a.__v=_,a.__P=e,f=a.render(a.props,a.state,a.context),a.state=a.__s,null!=a.getChildContext&&(o=s(s({},o),a.getChildContext())),p||null==a.getSnapshotBeforeUpdate||(m=a.getSnapshotBeforeUpdate(v,y)),H=null!=f&&f.type===h&&null==f.key?f.props.children:f,k(e,Array.isArray(H)?H:[H],_,t,o,r,u,l,i,c),a.base=_.__e,_.__h=null,a.__h.length&&l.push(a),g&&(a.__E=a.__=null),a.__e=!1}else null==u&&_.__v===t.__v?(_.__k=t.__k,_.__e=t.__e):_.__e=w(t.__e,_,t,o,r,u,l,c);(f=n.diffed)&&f(_)}catch(e){_.__v=null,(c||null!=u)&&(_.__e=i,_.__h=!!c,u[u.indexOf(i)]=null),n.__e(e,_,t)}}function D(e,_){n.__c&&n.__c(_,e),e.some(function(_){try{e=_.__h,_.__h=[],e.some(function(e){e.call(_)})}catch(e){n.__e(e,_.__v)}})}function w(n,_,t,o,r,u,i,c){var s,a,p,h=t.props,d=_.props,y=_.type,m=0;if("svg"===y&&(r=!0),null!=u)for(;m<u.length;m++)if((s=u[m])&&(s===n||(y?s.localName==y:3==s.nodeType))){n=s,u[m]=null;break}if(null==n){if(null===y)return document.createTextNode(d);n=r?document.createElementNS("http://www.w3.org/2000/svg",y):document.createElement(y,d.is&&d),u=null,c=!1}if(null===y)h===d||c&&n.data===d||(n.data=d);else{if(u=u&&e.call(n.childNodes),a=(h=t.props||l).dangerouslySetInnerHTML,p=d.dangerouslySetInnerHTML,!c){if(null!=u)for(h={},m=0;m<n.attributes.length;m++)h[n.attributes[m].name]=n.attributes[m].value;(p||a)&&(p&&(a&&p.__html==a.__html||p.__html===n.innerHTML)||(n.innerHTML=p&&p.__html||""))}if(function(e,n,_,t,o){var r;for(r in _)"children"===r||"key"===r||r in n||H(e,r,null,_[r],t);for(r in n)o&&"function"!=typeof n[r]||"children"===r||"key"===r||"value"===r||"checked"===r||_[r]===n[r]||H(e,r,n[r],_[r],t)}(n,d,h,r,c),p)_.__k=[];else if(m=_.props.children,k(n,Array.isArray(m)?m:[m],_,t,o,r&&"foreignObject"!==y,u,i,u?u[0]:t.__k&&v(t,0),c),null!=u)for(m=u.length;m--;)null!=u[m]&&f(u[m]);c||("value"in d&&void 0!==(m=d.value)&&(m!==n.value||"progress"===y&&!m)&&H(n,"value",m,h.value,!1),"checked"in d&&void 0!==(m=d.checked)&&m!==n.checked&&H(n,"checked",m,h.checked,!1))}return n}function T(e,_,t){try{"function"==typeof e?e(_):e.current=_}catch(e){n.__e(e,t)}}function U(e,_,t){var o,r;if(n.unmount&&n.unmount(e),(o=e.ref)&&(o.current&&o.current!==e.__e||T(o,null,_)),null!=(o=e.__c)){if(o.componentWillUnmount)try{o.componentWillUnmount()}catch(e){n.__e(e,_)}o.base=o.__P=null}if(o=e.__k)for(r=0;r<o.length;r++)o[r]&&U(o[r],_,"function"!=typeof e.type);t||null==e.__e||f(e.__e),e.__e=e.__d=void 0}function A(e,n,_){return this.constructor(e,_)}function M(_,t,o){var r,u,i;n.__&&n.__(_,t),u=(r="function"==typeof o)?null:o&&o.__k||t.__k,i=[],P(t,_=(!r&&o||t).__k=a(h,null,[_]),u||l,l,void 0!==t.ownerSVGElement,!r&&o?[o]:u?null:t.firstChild?e.call(t.childNodes):null,i,!r&&o?o:u?u.__e:t.firstChild,r),D(i,_)}function F(e,n){var _={__c:n="__cC"+u++,__:e,Consumer:function(e,n){return e.children(n)},Provider:function(e){var _,t;return this.getChildContext||(_=[],(t={})[n]=this,this.getChildContext=function(){return t},this.shouldComponentUpdate=function(e){this.props.value!==e.value&&_.some(m)},this.sub=function(e){_.push(e);var n=e.componentWillUnmount;e.componentWillUnmount=function(){_.splice(_.indexOf(e),1),n&&n.call(e)}}),e.children}};return _.Provider.__=_.Consumer.contextType=_}e=i.slice,n={__e:function(e,n){for(var _,t,o;n=n.__;)if((_=n.__c)&&!_.__)try{if((t=_.constructor)&&null!=t.getDerivedStateFromError&&(_.setState(t.getDerivedStateFromError(e)),o=_.__d),null!=_.componentDidCatch&&(_.componentDidCatch(e),o=_.__d),o)return _.__E=_}catch(n){e=n}throw e}},_=0,d.prototype.setState=function(e,n){var _;_=null!=this.__s&&this.__s!==this.state?this.__s:this.__s=s({},this.state),"function"==typeof e&&(e=e(s({},_),this.props)),e&&s(_,e),null!=e&&this.__v&&(n&&this.__h.push(n),m(this))},d.prototype.forceUpdate=function(e){this.__v&&(this.__e=!0,e&&this.__h.push(e),m(this))},d.prototype.render=h,t=[],o="function"==typeof Promise?Promise.prototype.then.bind(Promise.resolve()):setTimeout,g.__r=0,u=0;var L,N,W,R=0,I=[],O=n.__b,V=n.__r,q=n.diffed,B=n.__c,$=n.unmount;function j(e,_){n.__h&&n.__h(N,e,R||_),R=0;var t=N.__H||(N.__H={__:[],__h:[]});return e>=t.__.length&&t.__.push({}),t.__[e]}function G(e){return R=1,z(ie,e)}function z(e,n,_){var t=j(L++,2);return t.t=e,t.__c||(t.__=[_?_(n):ie(void 0,n),function(e){var n=t.t(t.__[0],e);t.__[0]!==n&&(t.__=[n,t.__[1]],t.__c.setState({}))}],t.__c=N),t.__}function J(e,_){var t=j(L++,3);!n.__s&&le(t.__H,_)&&(t.__=e,t.__H=_,N.__H.__h.push(t))}function K(e,_){var t=j(L++,4);!n.__s&&le(t.__H,_)&&(t.__=e,t.__H=_,N.__h.push(t))}function Q(e){return R=5,Y(function(){return{current:e}},[])}function X(e,n,_){R=6,K(function(){"function"==typeof e?e(n()):e&&(e.current=n())},null==_?_:_.concat(e))}function Y(e,n){var _=j(L++,7);return le(_.__H,n)&&(_.__=e(),_.__H=n,_.__h=e),_.__}function Z(e,n){return R=8,Y(function(){return e},n)}function ee(e){var n=N.context[e.__c],_=j(L++,9);return _.c=e,n?(null==_.__&&(_.__=!0,n.sub(N)),n.props.value):e.__}function ne(e,_){n.useDebugValue&&n.useDebugValue(_?_(e):e)}function _e(e){var n=j(L++,10),_=G();return n.__=e,N.componentDidCatch||(N.componentDidCatch=function(e){n.__&&n.__(e),_[1](e)}),[_[0],function(){_[1](void 0)}]}function te(){I.forEach(function(e){if(e.__P)try{e.__H.__h.forEach(re),e.__H.__h.forEach(ue),e.__H.__h=[]}catch(_){e.__H.__h=[],n.__e(_,e.__v)}}),I=[]}n.__b=function(e){N=null,O&&O(e)},n.__r=function(e){V&&V(e),L=0;var n=(N=e.__c).__H;n&&(n.__h.forEach(re),n.__h.forEach(ue),n.__h=[])},n.diffed=function(e){q&&q(e);var _=e.__c;_&&_.__H&&_.__H.__h.length&&(1!==I.push(_)&&W===n.requestAnimationFrame||((W=n.requestAnimationFrame)||function(e){var n,_=function(){clearTimeout(t),oe&&cancelAnimationFrame(n),setTimeout(e)},t=setTimeout(_,100);oe&&(n=requestAnimationFrame(_))})(te)),N=void 0},n.__c=function(e,_){_.some(function(e){try{e.__h.forEach(re),e.__h=e.__h.filter(function(e){return!e.__||ue(e)})}catch(t){_.some(function(e){e.__h&&(e.__h=[])}),_=[],n.__e(t,e.__v)}}),B&&B(e,_)},n.unmount=function(e){$&&$(e);var _=e.__c;if(_&&_.__H)try{_.__H.__.forEach(re)}catch(e){n.__e(e,_.__v)}};var oe="function"==typeof requestAnimationFrame;function re(e){var n=N;"function"==typeof e.__c&&e.__c(),N=n}function ue(e){var n=N;e.__c=e.__(),N=n}function le(e,n){return!e||e.length!==n.length||n.some(function(n,_){return n!==e[_]})}function ie(e,n){return"function"==typeof n?n(e):n}var ce=function(e,n,_,t){var o;n[0]=0;for(var r=1;r<n.length;r++){var u=n[r++],l=n[r]?(n[0]|=u?1:2,_[n[r++]]):n[++r];3===u?t[0]=l:4===u?t[1]=Object.assign(t[1]||{},l):5===u?(t[1]=t[1]||{})[n[++r]]=l:6===u?t[1][n[++r]]+=l+"":u?(o=e.apply(l,ce(e,l,_,["",null])),t.push(o),l[0]?n[0]|=2:(n[r-2]=0,n[r]=o)):t.push(l)}return t},se=new Map,fe=function(e){var n=se.get(this);return n||(n=new Map,se.set(this,n)),(n=ce(this,n.get(e)||(n.set(e,n=function(e){for(var n,_,t=1,o="",r="",u=[0],l=function(e){1===t&&(e||(o=o.replace(/^\\s*\\n\\s*|\\s*\\n\\s*$/g,"")))?u.push(0,e,o):3===t&&(e||o)?(u.push(3,e,o),t=2):2===t&&"..."===o&&e?u.push(4,e,0):2===t&&o&&!e?u.push(5,0,!0,o):t>=5&&((o||!e&&5===t)&&(u.push(t,0,o,_),t=6),e&&(u.push(t,e,0,_),t=6)),o=""},i=0;i<e.length;i++){i&&(1===t&&l(),l(i));for(var c=0;c<e[i].length;c++)n=e[i][c],1===t?"<"===n?(l(),u=[u],t=3):o+=n:4===t?"--"===o&&">"===n?(t=1,o=""):o=n+o[0]:r?n===r?r="":o+=n:'"'===n||"'"===n?r=n:">"===n?(l(),t=1):t&&("="===n?(t=5,_=o,o=""):"/"===n&&(t<5||">"===e[i][c+1])?(l(),3===t&&(u=u[0]),t=u,(u=u[0]).push(2,0,t),t=0):" "===n||"\\t"===n||"\\n"===n||"\\r"===n?(l(),t=2):o+=n),3===t&&"!--"===o&&(t=4,u=u[0])}return l(),u}(e)),n),arguments,[])).length>1?n:n[0]}.bind(a);export{a as h,fe as html,M as render,d as Component,F as createContext,G as useState,z as useReducer,J as useEffect,K as useLayoutEffect,Q as useRef,X as useImperativeHandle,Y as useMemo,Z as useCallback,ee as useContext,ne as useDebugValue,_e as useErrorBoundary};
`],
  ["revoke-dialog.js", `import { ask } from "./api.js";
import { html, useEffect, useRef, useState } from "./preact.js";
import { foreign, visible } from "./text.js";
const NEWS = {
    revoked: "The lease was revoked.",
    not_held: "Nothing was revoked: that lease was over already.",
};
export function RevokeDialog(state) {
    const { lock, token, actor, isCurrent, announce, onClose } = state;
    const [typed, setTyped] = useState("");
    const [reason, setReason] = useState("");
    const [problem, setProblem] = useState("");
    const [isBusy, setBusy] = useState(false);
    const dialog = useRef(null);
    const wanted = visible(lock.name);
    const isReady = typed === wanted && reason.trim() !== "" && !isBusy;
    useEffect(() => {
        dialog.current?.showModal();
        return;
    }, []);
    const submit = async (event) => {
        event.preventDefault();
        if (!isReady)
            return;
        setBusy(true);
        setProblem("");
        try {
            const { space, name } = lock;
            const body = JSON.stringify({ space, name, token, reason });
            const headers = { "content-type": "application/json" };
            const response = await ask("revoke", { method: "POST", headers, body });
            const { outcome, isAudited } = (await response.json());
            announce(NEWS[outcome] + (isAudited ? "" : " The audit did not take its outcome."));
            onClose();
        }
        catch (error) {
            setProblem(error instanceof Error ? error.message : String(error));
            setBusy(false);
        }
    };
    return html \`<dialog ref=\${dialog} aria-labelledby="revoke-title" onClose=\${onClose}>
    <form onSubmit=\${submit}>
      <h2 id="revoke-title">Revoke a lease</h2>
      <p>
        The lock \${foreign(lock.name)} is free at once. Its holder learns of it at its next
        renewal: until then <strong>both may work</strong>, unless the resource checks tokens.
      </p>
      \${!isCurrent && html \`<p class="tag warn">The lease with token \${token} is over already.</p>\`}
      <label for="typed">Type the name of the lock to confirm</label>
      <input id="typed" autocomplete="off" spellcheck=\${false} value=\${typed} required
        onInput=\${(event) => setTyped(event.target.value)} />
      <label for="reason">Reason</label>
      <textarea id="reason" rows="3" maxlength="900" required aria-describedby="reason-note"
        value=\${reason} onInput=\${(event) => {
        setReason(event.target.value);
    }}></textarea>
      <p id="reason-note" class="note">
        The holder reads the reason and who gave it: \${foreign(actor)}. Both go into the audit.
      </p>
      \${problem !== "" && html \`<p class="problem bad-text" role="alert">\${foreign(problem)}</p>\`}
      <div class="choices">
        <button type="button" onClick=\${() => dialog.current?.close()}>Cancel</button>
        <button type="submit" class="danger" disabled=\${!isReady}>Revoke token \${token}</button>
      </div>
    </form>
  </dialog>\`;
}
`],
  ["route.js", `export function routeOf(hash) {
    const [path = "", search = ""] = hash.replace(/^#\\/?/, "").split("?");
    const [page, space = "", name = ""] = path.split("/");
    if (page === "lock" && name !== "")
        return { page, space, name: decoded(name) };
    if (page === "leases" || page === "doctor")
        return { page };
    const query = new URLSearchParams(search);
    return {
        page: "locks",
        prefix: query.get("prefix") ?? "",
        space: query.get("space") ?? "",
        offset: Number(query.get("offset")) || 0,
    };
}
export function addressOf(route) {
    if (route.page === "lock")
        return \`#/lock/\${route.space}/\${encodeURIComponent(route.name)}\`;
    if (route.page !== "locks")
        return \`#/\${route.page}\`;
    const query = new URLSearchParams();
    if (route.prefix !== "")
        query.set("prefix", route.prefix);
    if (route.space !== "")
        query.set("space", route.space);
    if (route.offset > 0)
        query.set("offset", \`\${route.offset}\`);
    return query.size > 0 ? \`#/?\${query}\` : "#/";
}
export function addressOfLock({ space, name }) {
    return addressOf({ page: "lock", space, name });
}
export function queryOf(route) {
    if (route.page === "lock") {
        return \`\${new URLSearchParams({ view: "lock", space: route.space, name: route.name })}\`;
    }
    if (route.page !== "locks")
        return \`view=\${route.page}\`;
    const { prefix, space, offset } = route;
    return \`\${new URLSearchParams({ view: "locks", prefix, space, offset: \`\${offset}\` })}\`;
}
function decoded(text) {
    try {
        return decodeURIComponent(text);
    }
    catch {
        return text;
    }
}
`],
  ["status-banner.js", `import { html } from "./preact.js";
import { foreign, time } from "./text.js";
export function statusBanner(message, link) {
    if (link.is === "refused")
        return refused(link.status, link.problem);
    if (link.is === "broken") {
        return html \`<section class="banner bad" aria-label="Connection">
      <h2>The dashboard does not answer</h2>
      <p>The page tries again by itself. Is the process that serves the dashboard still running?
        A new <code>holdfast dashboard</code> prints a new URL: open that one.</p>
    </section>\`;
    }
    if (message?.store.is !== "away")
        return null;
    const { problem, since } = message.store;
    return html \`<section class="banner bad" aria-label="Store">
    <h2>The store is away since \${time(since)}</h2>
    <p class="problem">\${foreign(problem)}</p>
    <ul>
      <li>Locks that are held stay held until their deadlines; without renewals they are lost then.
        Processes that wait go on waiting until their time is over.</li>
      <li>Look at the server: does it run, can this host reach it, does it take the password?</li>
      <li>The dashboard goes on asking. \${message.at > 0
        ? html \`The page shows the store as it was at \${time(message.at)}.\`
        : "The store has not answered yet."}</li>
    </ul>
  </section>\`;
}
function refused(status, problem) {
    const advice = status === 401
        ? html \`<p>
          Open the whole URL that <code>holdfast dashboard</code> printed: the part after the sign #
          is the key, and each start has a new one. Where the dashboard is part of an application,
          log in there.
        </p>\`
        : null;
    return html \`<section class="banner bad" aria-label="Access">
    <h2>The dashboard refused this page</h2>
    <p class="problem">\${foreign(problem)}</p>
    \${advice}
  </section>\`;
}
`],
  ["style.css", `:root {
  color-scheme: light dark;
  --ground: #f4f6f8;
  --card: #ffffff;
  --line: #d9dfe6;
  --text: #18202b;
  --muted: #566273;
  --accent: #0b62c4;
  --accent-soft: #e3eefb;
  --good: #1a7048;
  --good-soft: #e0f3e9;
  --warn: #805000;
  --warn-soft: #fdf0d5;
  --bad: #b3261e;
  --bad-soft: #fce8e6;
  --one: #3c82d6;
  --two: #2f9d8f;
  --three: #b98119;
  --on-bad: #ffffff;
}

@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0f141b;
    --card: #171e27;
    --line: #2b3644;
    --text: #e7ecf2;
    --muted: #9dabbb;
    --accent: #74b6ff;
    --accent-soft: #1b2f47;
    --good: #67d39e;
    --good-soft: #14301f;
    --warn: #f3bb62;
    --warn-soft: #38290d;
    --bad: #ff8f85;
    --bad-soft: #3d1a18;
    --one: #5b9fe8;
    --two: #4dbcae;
    --three: #d9a441;
    --on-bad: #2a0806;
  }
}

* {
  box-sizing: border-box;
}

body {
  margin: 0;
  background: var(--ground);
  color: var(--text);
  font:
    15px / 1.5 system-ui,
    "Segoe UI",
    Roboto,
    "Helvetica Neue",
    Arial,
    sans-serif;
}

a {
  color: var(--accent);
  text-underline-offset: 2px;
}

:focus-visible {
  outline: 3px solid var(--accent);
  outline-offset: 2px;
  border-radius: 3px;
}

h1:focus-visible {
  outline: none;
}

code {
  font:
    0.88em ui-monospace,
    "SF Mono",
    Menlo,
    Consolas,
    monospace;
}

.boot {
  padding: 2rem;
}

.unseen,
.skip:not(:focus) {
  position: absolute;
  width: 1px;
  height: 1px;
  overflow: hidden;
  clip-path: inset(50%);
  white-space: nowrap;
}

.skip:focus {
  position: absolute;
  z-index: 2;
  padding: 0.5rem 1rem;
  background: var(--card);
}

.foreign {
  unicode-bidi: isolate;
  overflow-wrap: anywhere;
  white-space: pre-wrap;
}

.top {
  display: flex;
  flex-wrap: wrap;
  align-items: center;
  gap: 0.4rem 1.4rem;
  padding: 0.55rem 1.5rem;
  background: var(--card);
  border-bottom: 1px solid var(--line);
}

.brand {
  display: flex;
  align-items: center;
  gap: 0.55rem;
  color: inherit;
  font-weight: 650;
  text-decoration: none;
}

.top nav {
  display: flex;
  gap: 0.25rem;
}

.top nav a {
  padding: 0.3rem 0.75rem;
  border-radius: 6px;
  color: var(--muted);
  text-decoration: none;
}

.top nav a:hover {
  color: var(--text);
}

.top nav a[aria-current] {
  background: var(--accent-soft);
  color: var(--accent);
  font-weight: 600;
}

.live {
  display: flex;
  align-items: center;
  gap: 0.5rem;
  margin-left: auto;
  color: var(--muted);
  font-variant-numeric: tabular-nums;
}

.lamp {
  width: 0.65rem;
  height: 0.65rem;
  border-radius: 50%;
  background: var(--muted);
}

.lamp.good {
  background: var(--good);
}

.lamp.bad {
  background: var(--bad);
}

main {
  max-width: 76rem;
  margin: 0 auto;
  padding: 1rem 1.5rem 3rem;
}

h1 {
  margin: 0.4rem 0 1rem;
  font-size: 1.45rem;
  line-height: 1.25;
}

h2 {
  margin: 0;
  font-size: 1.05rem;
}

section {
  margin: 0 0 1.6rem;
}

section > h2 {
  margin-bottom: 0.6rem;
}

.note,
.faint {
  color: var(--muted);
}

.bad-text {
  color: var(--bad);
}

.tiles,
.charts {
  display: grid;
  grid-template-columns: repeat(4, minmax(0, 1fr));
  gap: 0.8rem;
  margin: 0 0 0.8rem;
}

.charts {
  margin-bottom: 1.6rem;
}

.tiles > div,
.chart,
.card,
.scroll {
  background: var(--card);
  border: 1px solid var(--line);
  border-radius: 10px;
}

.tiles > div {
  padding: 0.7rem 0.9rem;
}

.tiles dt {
  color: var(--muted);
}

.tiles dd {
  margin: 0;
  color: var(--muted);
  font-variant-numeric: tabular-nums;
}

.tiles strong {
  margin-right: 0.3rem;
  color: var(--text);
  font-size: 1.5rem;
  line-height: 1.3;
}

.chart {
  display: flex;
  flex-direction: column;
  margin: 0;
  padding: 0.7rem 0.9rem 0.6rem;
}

.chart figcaption,
.scale {
  display: flex;
  justify-content: space-between;
  gap: 0.5rem;
  color: var(--muted);
  font-variant-numeric: tabular-nums;
}

.chart figcaption strong {
  color: var(--text);
  white-space: nowrap;
}

.chart svg {
  display: block;
  flex: 1 0 56px;
  width: 100%;
  height: 56px;
  margin: 0.4rem 0 0.3rem;
}

.scale,
.legend {
  font-size: 0.8rem;
}

.scale {
  white-space: nowrap;
}

.axis {
  stroke: var(--line);
}

.tone-one {
  fill: var(--one);
  background: var(--one);
}

.tone-two {
  fill: var(--two);
  background: var(--two);
}

.tone-three {
  fill: var(--three);
  background: var(--three);
}

.tone-bad {
  fill: var(--bad);
  background: var(--bad);
}

.legend {
  display: flex;
  flex-wrap: wrap;
  gap: 0 0.8rem;
  margin: 0.2rem 0 0;
  padding: 0;
  color: var(--muted);
  list-style: none;
}

.swatch {
  display: inline-block;
  width: 0.6rem;
  height: 0.6rem;
  margin-right: 0.3rem;
  border-radius: 2px;
}

.bar {
  display: flex;
  flex-wrap: wrap;
  align-items: center;
  justify-content: space-between;
  gap: 0.5rem 1rem;
  margin-bottom: 0.6rem;
}

.search {
  display: flex;
  flex-wrap: wrap;
  align-items: center;
  gap: 0.4rem 0.6rem;
}

.search-label {
  color: var(--muted);
}

input,
select,
textarea,
button,
.button {
  padding: 0.35rem 0.65rem;
  border: 1px solid var(--line);
  border-radius: 6px;
  background: var(--card);
  color: inherit;
  font: inherit;
}

input,
select,
textarea {
  border-color: var(--muted);
}

::placeholder {
  color: var(--muted);
  opacity: 1;
}

button,
.button {
  cursor: pointer;
  text-decoration: none;
}

button:hover:not(:disabled),
a.button:hover {
  border-color: var(--accent);
}

button:disabled,
.button.off {
  cursor: default;
  opacity: 0.5;
}

button.danger {
  border-color: var(--bad);
  color: var(--bad);
}

button.danger[type="submit"]:not(:disabled) {
  background: var(--bad);
  color: var(--on-bad);
}

button[aria-pressed="true"] {
  background: var(--accent-soft);
  border-color: var(--accent);
}

.scroll {
  overflow-x: auto;
}

table {
  width: 100%;
  border-collapse: collapse;
  font-variant-numeric: tabular-nums;
}

th,
td {
  padding: 0.4rem 0.8rem;
  border-bottom: 1px solid var(--line);
  text-align: left;
  vertical-align: top;
}

thead th {
  color: var(--muted);
  font-size: 0.83rem;
  font-weight: 600;
  white-space: nowrap;
}

tbody tr:last-child > * {
  border-bottom: 0;
}

tbody tr:hover {
  background: var(--accent-soft);
}

tbody th {
  font-weight: 600;
}

.locks th:first-child {
  min-width: 9rem;
}

.number {
  text-align: right;
  white-space: nowrap;
}

.narrow {
  display: none;
}

.first {
  width: 1%;
}

.pager {
  display: flex;
  flex-wrap: wrap;
  align-items: center;
  justify-content: center;
  gap: 0.5rem;
  margin-top: 0.8rem;
  font-variant-numeric: tabular-nums;
}

.tag {
  display: inline-block;
  padding: 0 0.45rem;
  border-radius: 5px;
  background: var(--accent-soft);
  color: var(--accent);
  font-size: 0.85rem;
}

.tag.warn,
.tag.warning {
  background: var(--warn-soft);
  color: var(--warn);
}

.tag.danger {
  background: var(--bad-soft);
  color: var(--bad);
}

.tag.ok {
  background: var(--good-soft);
  color: var(--good);
}

.cards {
  display: grid;
  grid-template-columns: repeat(auto-fill, minmax(min(22rem, 100%), 1fr));
  gap: 0.8rem;
}

.card {
  padding: 0.9rem 1.1rem;
}

.card p {
  margin: 0.8rem 0 0;
}

.facts {
  margin: 0;
}

.facts > div {
  display: grid;
  grid-template-columns: minmax(6.5rem, 38%) 1fr;
  gap: 0.8rem;
  padding: 0.12rem 0;
}

.facts dt {
  color: var(--muted);
}

.facts dd {
  margin: 0;
  overflow-wrap: anywhere;
}

.banner {
  padding: 0.9rem 1.1rem;
  border: 1px solid var(--bad);
  border-left-width: 5px;
  border-radius: 8px;
  background: var(--bad-soft);
}

.banner h2 {
  color: var(--bad);
}

.banner p,
.banner ul {
  margin: 0.5rem 0 0;
}

.banner ul {
  padding-left: 1.2rem;
}

.findings {
  margin: 0;
  padding: 0;
  list-style: none;
}

.findings li {
  margin-bottom: 0.5rem;
  padding: 0.6rem 1rem;
  border: 1px solid var(--line);
  border-left: 4px solid var(--line);
  border-radius: 8px;
  background: var(--card);
}

.findings p {
  margin: 0.15rem 0;
}

.findings .severity-danger {
  border-left-color: var(--bad);
}

.findings .severity-warning {
  border-left-color: var(--three);
}

.findings .severity-ok {
  border-left-color: var(--good);
}

dialog {
  width: min(34rem, calc(100vw - 2rem));
  padding: 1.2rem 1.4rem;
  border: 1px solid var(--line);
  border-radius: 12px;
  background: var(--card);
  color: var(--text);
}

dialog::backdrop {
  background: rgb(0 0 0 / 50%);
}

dialog label {
  display: block;
  margin: 0.8rem 0 0.25rem;
  font-weight: 600;
}

dialog input,
dialog textarea {
  width: 100%;
}

.choices {
  display: flex;
  flex-wrap: wrap;
  justify-content: flex-end;
  gap: 0.6rem;
  margin-top: 1rem;
}

@media (max-width: 62rem) {
  .tiles,
  .charts {
    grid-template-columns: repeat(2, minmax(0, 1fr));
  }
}

@media (max-width: 44rem) {
  main {
    display: flex;
    flex-direction: column;
  }

  .charts {
    order: 1;
  }

  .wide {
    display: none;
  }

  .narrow {
    display: block;
    font-size: 0.87rem;
    font-weight: 400;
  }

  main > p:first-of-type {
    margin-top: 0;
  }

  .top,
  main {
    padding-inline: 0.9rem;
  }

  th,
  td {
    padding-inline: 0.55rem;
  }

  thead th,
  thead .number {
    white-space: normal;
  }

  .locks th:first-child {
    width: 100%;
    min-width: 0;
  }
}

@media (max-width: 30rem) {
  .live {
    margin-left: 0;
  }

  .search,
  .search input {
    width: 100%;
  }

  .tiles dd span {
    display: block;
  }
}

@media (prefers-reduced-motion: no-preference) {
  .lamp.good {
    transition: background 0.3s;
  }
}
`],
  ["text.js", `import { html } from "./preact.js";
const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
export function duration(durationMs) {
    const ms = Math.max(0, durationMs);
    if (ms < SECOND_MS)
        return \`\${Math.round(ms)} ms\`;
    if (ms < 10 * SECOND_MS)
        return \`\${(ms / SECOND_MS).toFixed(1).replace(/\\.0$/, "")} s\`;
    if (ms < MINUTE_MS)
        return \`\${Math.floor(ms / SECOND_MS)} s\`;
    if (ms < HOUR_MS)
        return pair(ms, MINUTE_MS, "m", SECOND_MS, "s");
    if (ms < DAY_MS)
        return pair(ms, HOUR_MS, "h", MINUTE_MS, "m");
    return pair(ms, DAY_MS, "d", HOUR_MS, "h");
}
function pair(ms, large, of, small, rest) {
    const parts = Math.floor((ms % large) / small);
    return \`\${Math.floor(ms / large)} \${of}\${parts > 0 ? \` \${parts} \${rest}\` : ""}\`;
}
export function time(at) {
    const date = new Date(at);
    const clock = date.toTimeString().slice(0, 8);
    const isToday = date.toDateString() === new Date().toDateString();
    return isToday ? clock : \`\${date.toLocaleDateString("sv")} \${clock}\`;
}
export function count(value, one, many = \`\${one}s\`) {
    return \`\${value.toLocaleString("en")} \${value === 1 ? one : many}\`;
}
const STEERING = /[\\p{Cc}\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}]/gu;
export function visible(text) {
    return text.replace(STEERING, (letter) => {
        return \`\\\\u{\${(letter.codePointAt(0) ?? 0).toString(16)}}\`;
    });
}
export function foreign(text) {
    return html \`<bdi class="foreign">\${visible(text)}</bdi>\`;
}
`],
]);
