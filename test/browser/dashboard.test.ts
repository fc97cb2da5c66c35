import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect } from "../../src/api/connect.js";
import { type AuditLine, serveDashboard } from "../../src/dashboard/index.js";
import { isFull, isQuick } from "../fixtures/depth.js";
import { startRedis } from "../servers/redis.js";
import { findChromium, onPath, startChromium } from "./chromium.js";
import { Stage } from "./stage.js";

const program = findChromium();
if (!program) console.warn("test/browser: skipped, because there is no chromium on the PATH.");

const hasRedis = onPath("redis-server") !== null;

const EVIL = [
  "<img src=x onerror=window.pwned=1>",
  '"><script>window.pwned=1</script>',
  "javascript:window.pwned=1",
  "{{constructor.constructor('window.pwned=1')()}}",
];

const SCREENS: readonly (readonly ["light" | "dark", number])[] = [
  ["light", 360],
  ["dark", 1_280],
  ...(isFull ? [["light", 1_280] as const, ["dark", 360] as const] : []),
];

describe.skipIf(!program)("the page of the dashboard", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startChromium(program ?? "");
  });
  afterAll(() => browser?.close());

  /** A page of its own, whose errors fail the test at its end. */
  async function open(url: string, options: BrowserContextOptions = {}) {
    const context = await browser.newContext({
      viewport: { width: 1280, height: 900 },
      ...options,
    });
    const page = await context.newPage();
    const errors: string[] = [];
    page.on("pageerror", (error) => errors.push(error.message));
    page.on("console", (line) => {
      if (line.type() === "error") errors.push(line.text());
    });
    await page.goto(url);
    return { page, context, errors, [Symbol.asyncDispose]: () => context.close() };
  }

  const heading = (page: Page, name: string) => page.getByRole("heading", { level: 1, name });

  it("shows locks by longest wait, live, and one lock closely", async () => {
    await using stage = await Stage.open();
    await stage.hold("idle", { host: "web1", pid: 1, label: "api" });
    const lease = await stage.hold("busy", { host: "web2", pid: 7, label: "worker", ticket: "T1" });
    await stage.queue("busy", 3, { host: "web3", label: "job" });
    await using view = await open(stage.board.url);
    const { page, errors } = view;
    const rows = page.getByRole("table", { name: /longest wait/ }).getByRole("row");
    await expect.poll(() => rows.nth(1).textContent()).toContain("busy");
    expect(await rows.nth(1).textContent()).toContain("worker on web2 (pid 7)");
    expect(await rows.nth(2).textContent()).toContain("idle");

    await stage.hold("later");
    await expect.poll(() => rows.count()).toBe(4);

    await page.getByRole("link", { name: "busy" }).click();
    await heading(page, "busy").waitFor();
    await page.getByText(`${lease.token}`).waitFor();
    for (const text of ["web2", "T1", "Queue (3)"]) {
      expect(await page.getByRole("main").textContent()).toContain(text);
    }
    expect(await page.getByRole("button", { name: /Revoke/ }).count()).toBe(0);
    await lease.release();
    await page
      .getByText(/granted to/)
      .first()
      .waitFor();
    expect(errors).toEqual([]);
  });

  it("takes the token out of the address, and is refused without it", async () => {
    await using stage = await Stage.open();
    await stage.hold("secret-lock");
    const [address = "", token = ""] = stage.board.url.split("#token=");
    await using view = await open(stage.board.url);
    await view.page.getByRole("link", { name: "secret-lock" }).waitFor();
    expect(view.page.url()).toBe(`${address}#/`);
    await view.page.reload();
    await view.page.getByRole("link", { name: "secret-lock" }).waitFor();
    expect(await view.page.content()).not.toContain(token);

    await using stranger = await open(address);
    await stranger.page.getByRole("heading", { name: /refused/ }).waitFor();
    expect(await stranger.page.content()).not.toContain("secret-lock");
    await using guess = await open(`${address}#token=${"A".repeat(43)}`);
    await guess.page.getByRole("heading", { name: /refused/ }).waitFor();
  });

  it("revokes with a typed name and a reason, by keyboard alone", async () => {
    const audit: AuditLine[] = [];
    const onAudit = (line: AuditLine): void => void audit.push(line);
    await using stage = await Stage.open({ allowRevoke: true, onAudit, actor: "mira" });
    const lease = await stage.hold("deploy", { host: "web1" });
    await using view = await open(stage.board.url);
    const { page, errors } = view;
    await page.getByRole("link", { name: "deploy" }).focus();
    await page.keyboard.press("Enter");
    const button = page.getByRole("button", { name: /Revoke this lease/ });
    await button.focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Revoke a lease" });
    await dialog.waitFor();
    const submit = dialog.getByRole("button", { name: /Revoke token/ });
    await page.keyboard.type("deplo");
    await page.keyboard.press("Tab");
    await page.keyboard.type("host is gone");
    expect(await submit.isDisabled()).toBe(true);
    await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("End");
    await page.keyboard.type("y");
    expect(await submit.isEnabled()).toBe(true);
    expect(audit).toEqual([]);
    await page.keyboard.press("Enter");
    await page.getByText("The lease was revoked.").waitFor({ state: "attached" });
    expect(audit.map(({ outcome, actor, reason }) => [outcome, actor, reason])).toEqual([
      ["asked", "mira", "host is gone"],
      ["revoked", "mira", "host is gone"],
    ]);
    await expect(lease.renew()).rejects.toThrow("host is gone (by mira)");
    await page.getByText("The lock is free.").waitFor();
    await page.getByText("revoked by").waitFor();
    expect(errors).toEqual([]);
  });

  it("shows names, meta and reasons of attackers as text", async () => {
    await using stage = await Stage.open({ allowRevoke: true, onAudit: () => {}, title: EVIL[0] });
    for (const text of EVIL) {
      await stage.hold(text, {
        host: text,
        pid: text,
        label: text,
        reason: text,
        [text]: { text },
      });
      await stage.queue(text, 1, { host: text, label: text });
    }
    await stage.hold("a\u202egnp.exe", { label: "b\u0000c" });
    await using view = await open(stage.board.url);
    const { page, errors } = view;
    for (const text of EVIL) {
      await page.getByRole("row").getByRole("link", { name: text, exact: true }).click();
      await heading(page, text).waitFor();
      await page.getByRole("heading", { name: "Queue (1)" }).waitFor();
      expect(await page.getByRole("main").textContent()).toContain(`reason${text}`);
      await page.getByRole("button", { name: /Revoke this lease/ }).click();
      await page.getByLabel("Type the name").fill(text);
      await page.getByLabel("Reason").fill(text);
      await page.getByRole("button", { name: /Revoke token/ }).click();
      await page.getByText("The lease was revoked.").waitFor({ state: "attached" });
      await page.getByRole("link", { name: "all locks" }).click();
    }
    // A name that would be read backwards is spelt out.
    await page.getByRole("link", { name: "a\\u{202e}gnp.exe" }).waitFor();
    expect(await page.evaluate("window.pwned")).toBeUndefined();
    expect(await page.locator("main img, main script, main iframe").count()).toBe(0);
    expect(errors).toEqual([]);
  });

  it("is not opened by a name that leads here (DNS rebinding)", async () => {
    await using stage = await Stage.open();
    await stage.hold("secret-lock");
    const { port } = new URL(stage.board.url);
    await using view = await open(`http://rebound.test:${port}/`);
    expect(await view.page.content()).toContain("not in the option");
    const status = await view.page.evaluate(
      "fetch('/api/live', { headers: { 'x-holdfast-dashboard': '1' } }).then((r) => r.status)",
    );
    expect(status).toBe(403);
  });

  it("gives nothing to pages of other origins, and cannot be framed", async () => {
    const audit: AuditLine[] = [];
    const onAudit = (line: AuditLine): void => void audit.push(line);
    await using victim = await Stage.open({ allowRevoke: true, onAudit });
    await using other = await Stage.open();
    const lease = await victim.hold("a");
    const [address, token] = victim.board.url.split("#token=");
    const { port } = new URL(victim.board.url);
    await using view = await open(`http://127.0.0.1:${new URL(other.board.url).port}/`);
    // Even with the token: a page of another port, without the policy that would stop it earlier.
    await using bare = await browser.newContext({ bypassCSP: true });
    const page = await bare.newPage();
    await page.goto(view.page.url());
    const order = { space: "lock", name: "a", token: `${lease.token}`, reason: "evil" };
    const attempts = await page.evaluate(
      async ({ url, key, body }) => {
        const headers = { authorization: `Bearer ${key}`, "x-holdfast-dashboard": "1" };
        const plain = { method: "POST", mode: "no-cors", body } as const;
        const tries = [
          fetch(`${url}api/revoke`, { method: "POST", headers, body }),
          fetch(`${url}api/live`, { headers }),
          fetch(`${url}api/revoke`, plain).then(({ type }) => type),
        ];
        const results = await Promise.allSettled(tries);
        return results.map(({ status }) => status);
      },
      { url: address ?? "", key: token ?? "", body: JSON.stringify(order) },
    );
    // The last one is sent, and its answer cannot be read.
    expect(attempts.slice(0, 2)).toEqual(["rejected", "rejected"]);
    expect(audit).toEqual([]);
    expect(lease.state).toBe("held");

    const framed = await page.evaluate(async (url) => {
      const frame = document.createElement("iframe");
      frame.src = url;
      const loaded = new Promise((resolve) => frame.addEventListener("load", resolve));
      document.body.append(frame);
      await loaded;
      return frame.contentDocument === null;
    }, `http://127.0.0.1:${port}/`);
    expect(framed).toBe(true);
    const frame = page.frames().find((one) => one !== page.mainFrame());
    expect(await frame?.locator("#app").count()).toBe(0);
  });

  it("finds locks by their beginning among thousands, page by page", async () => {
    await using stage = await Stage.open();
    for (let index = 0; index < 2_000; index += 1) await stage.hold(`cart:${index}`);
    await stage.hold("deploy:web");
    await using view = await open(stage.board.url);
    const { page, errors } = view;
    await page.getByText("1 to 100 of 2,001").waitFor();
    await page.getByRole("link", { name: "Last" }).click();
    await page.getByText("2,001 to 2,001 of 2,001").waitFor();
    expect(await page.locator("tbody tr").count()).toBe(1);
    await page.keyboard.press("/");
    await page.keyboard.type("deploy");
    await expect.poll(() => page.locator("tbody tr").allTextContents()).toHaveLength(1);
    await page.getByRole("link", { name: "deploy:web" }).waitFor();
    await page.getByText("1 lock found.").waitFor({ state: "attached" });
    await page.getByLabel("Name begins with").fill("nothing");
    await page.getByText("No lock is in use that fits the search.").waitFor();
    expect(errors).toEqual([]);
  });

  it("says that the dashboard is gone", async () => {
    const stage = await Stage.open();
    await using view = await open(stage.board.url);
    await view.page.getByText("No lock is in use").waitFor();
    await stage[Symbol.asyncDispose]();
    await view.page.getByRole("heading", { name: "The dashboard does not answer" }).waitFor();
  });

  // It waits for the store to be away and back, which takes as long as all the others.
  it.skipIf(!hasRedis || isQuick)(
    "helps while the store is away, and says that it is back",
    async () => {
      await using redis = await startRedis();
      const locks = await connect(redis.url, { ttlMs: 60_000 });
      const board = await serveDashboard(locks, { everyMs: 250 });
      try {
        await locks.mutex("kept").acquire();
        await using view = await open(board.url);
        const { page, errors } = view;
        await page.getByRole("link", { name: "kept" }).waitFor();
        await redis.kill();
        const banner = page.getByRole("region", { name: "Store" });
        await banner.waitFor();
        expect(await banner.textContent()).toMatch(/The store is away since \d\d:\d\d:\d\d/);
        expect(await banner.textContent()).toContain("127.0.0.1");
        // The last state that is known stays in sight.
        expect(await page.getByRole("link", { name: "kept" }).count()).toBe(1);
        await page.getByText("The store is away.").waitFor({ state: "attached" });
        await redis.start();
        await banner.waitFor({ state: "detached" });
        await page.getByText("The store is back.").waitFor({ state: "attached" });
        expect(errors).toEqual([]);
      } finally {
        await board.close();
        await locks.close();
      }
    },
  );

  it("stops looking while it is paused", async () => {
    await using stage = await Stage.open();
    await using view = await open(stage.board.url);
    const { page } = view;
    await page.getByText("No lock is in use").waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByText(/^Paused/).waitFor();
    await stage.hold("unseen");
    await page.getByRole("button", { name: "Pause", pressed: true }).click();
    await page.getByRole("link", { name: "unseen" }).waitFor();
  });

  it("shows the findings of the doctor and the leases of its process", async () => {
    await using stage = await Stage.open();
    await stage.hold("mine");
    await using view = await open(stage.board.url);
    const { page, errors } = view;
    await page.getByRole("link", { name: "Doctor" }).click();
    await heading(page, "Doctor").waitFor();
    await page.getByText("process/event-loop").waitFor();
    await page.getByRole("link", { name: "Leases" }).click();
    await page.getByRole("rowheader", { name: "mine" }).waitFor();
    expect(errors).toEqual([]);
  });

  it("has landmarks, one first heading, and names for all that can be used", async () => {
    await using stage = await Stage.open();
    await stage.hold("a");
    await using view = await open(stage.board.url);
    const { page } = view;
    await page.getByRole("link", { name: "a", exact: true }).waitFor();
    for (const role of ["banner", "main", "search", "status"] as const) {
      expect(await page.getByRole(role).count()).toBe(1);
    }
    expect(await page.getByRole("navigation", { name: "Pages" }).count()).toBe(1);
    expect(await page.getByRole("heading", { level: 1 }).count()).toBe(1);
    expect(await page.getByRole("columnheader").count()).toBe(7);
    const nameless = await page.evaluate(() =>
      [...document.querySelectorAll("a, button, input, select, svg[role=img]")]
        .filter((one) => {
          const label = one.getAttribute("aria-label") ?? one.textContent?.trim();
          const isLabelled = one instanceof HTMLInputElement && (one.labels?.length ?? 0) > 0;
          return !label && !isLabelled;
        })
        .map((one) => one.outerHTML),
    );
    expect(nameless).toEqual([]);
    // A new page is read from its heading on.
    await page.getByRole("link", { name: "Leases" }).click();
    await expect.poll(() => page.evaluate("document.activeElement?.id")).toBe("title");
    expect(await page.title()).toContain("Leases of this process");
  });

  it.each(SCREENS)("fits the screen and can be read: %s, %d wide", async (colorScheme, width) => {
    await using stage = await Stage.open({
      title: "redis://a-host-with-a-long-name.internal:6379",
    });
    await stage.hold("x".repeat(400), { host: "h".repeat(200), label: "worker" });
    await stage.hold("short", { host: "web1" });
    await stage.queue("x".repeat(400), 2, { host: "h".repeat(200), label: "worker" });
    await using view = await open(stage.board.url, {
      colorScheme,
      viewport: { width, height: 800 },
    });
    const { page } = view;
    await page.getByRole("link", { name: "short" }).waitFor();
    // Neither the page nor a table in it has to be moved sideways.
    const overflows = (): Promise<number[]> =>
      page.evaluate(() =>
        [document.documentElement, ...document.querySelectorAll(".scroll")]
          .map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)
          .filter((over) => over > 0),
      );
    const expectReadable = async (): Promise<void> => {
      expect(await overflows()).toEqual([]);
      expect(await page.evaluate(leastContrast)).toBeGreaterThanOrEqual(4.5);
    };
    await expectReadable();
    await page.getByRole("link", { name: /^x{400}$/ }).click();
    await page.getByRole("heading", { name: "Queue (2)" }).waitFor();
    await page.getByRole("table", { name: /^Waiters/ }).waitFor();
    await expectReadable();
    await page.getByRole("link", { name: "Leases" }).click();
    await page.getByRole("rowheader", { name: "short" }).waitFor();
    await expectReadable();
    await page.getByRole("link", { name: "Doctor" }).click();
    await page.getByRole("heading", { name: /^Consequences/ }).waitFor();
    await expectReadable();
  });
});

/** The least contrast between a text of the page and its ground, as WCAG counts it. */
function leastContrast(): number {
  const numbers = (color: string): number[] => (color.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = (color: string): number => {
    const [red = 0, green = 0, blue = 0] = numbers(color).map((part) => {
      const share = part / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const groundOf = (element: Element | null): string => {
    for (let one = element; one; one = one.parentElement) {
      const { backgroundColor } = getComputedStyle(one);
      if ((numbers(backgroundColor)[3] ?? 1) > 0) return backgroundColor;
    }
    return "rgb(255, 255, 255)";
  };
  let least = Number.POSITIVE_INFINITY;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!element || !node.textContent?.trim() || element.closest(".off, :disabled")) continue;
    const ink = luminance(getComputedStyle(element).color);
    const ground = luminance(groundOf(element));
    const contrast = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
    least = Math.min(least, contrast);
  }
  return least;
}
