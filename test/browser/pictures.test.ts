/**
 * Takes the pictures of docs/operate.md, on demand: `npm run dashboard:pictures`. The package has
 * them, so make them small afterwards: `pngquant --ext .png --force docs/operate/*.png`.
 */
import { join } from "node:path";
import { expect, it } from "vitest";
import { findChromium, startChromium } from "./chromium.js";
import { Stage } from "./stage.js";

const folder = join(import.meta.dirname, "../../docs/operate");

const NAMES = ["invoice:42", "deploy:web", "report:daily", "sync:crm", "import:catalog"];
const LABELS = ["worker", "deploy.sh", "cron", "sync", "importer"];

/** The picture, the theme, the width and the height of the screen. */
const PICTURES = [
  ["locks-light", "light", 1_000, 640],
  ["locks-dark", "dark", 1_000, 640],
  ["revoke-dark", "dark", 1_000, 640],
  ["locks-narrow", "light", 390, 760],
] as const;

it.skipIf(!process.env.HOLDFAST_PICTURES)("is shown in the docs", async () => {
  const options = { allowRevoke: true, onAudit: () => {}, actor: "mira on ops-1" };
  await using stage = await Stage.open({ ...options, title: "redis://locks.internal" });
  const smtp = stage.locks.semaphore("smtp", 5);
  for (const [index, name] of NAMES.entries()) {
    const meta = { host: `web${(index % 3) + 1}`, pid: 4_711 + index, label: LABELS[index] };
    await stage.hold(name, index === 1 ? { ...meta, reason: "release 7" } : meta);
  }
  for (const pid of [812, 813]) {
    await smtp.acquire({ meta: { host: "mail1", pid, label: "sender" } });
  }
  for (let index = 0; index < 40; index += 1) {
    await stage.hold(`cart:${1_000 + index}`, { host: "web1", pid: 5_000, label: "checkout" });
  }
  const browser = await startChromium(findChromium() ?? "");
  await stage.queue("deploy:web", 4, { host: "ci-3", label: "deploy.sh" });
  // The charts show something only after a while.
  const watcher = await browser.newPage();
  await watcher.goto(stage.board.url);
  for (let round = 0; round < 5; round += 1) {
    await stage.queue("invoice:42", 1 + (round % 3), { host: "web2", label: "worker" });
    const brief = await stage.locks.mutex(`brief:${round}`).acquire({ ttlMs: 60_000 });
    await watcher.waitForTimeout(10_000);
    if (round === 3) {
      await stage.locks.revoke(brief.name, { token: brief.token, reason: "picture" });
      await brief.renew().catch(() => {});
    } else await brief.release();
  }
  for (const [name, colorScheme, width, height] of PICTURES) {
    const context = await browser.newContext({ colorScheme, viewport: { width, height } });
    const page = await context.newPage();
    await page.goto(stage.board.url);
    await page.getByRole("link", { name: "deploy:web" }).waitFor();
    if (!name.startsWith("locks")) {
      await page.getByRole("link", { name: "deploy:web" }).click();
      await page.getByRole("heading", { name: /^Queue/ }).waitFor();
    }
    if (name.startsWith("revoke")) {
      await page.getByRole("button", { name: /Revoke this lease/ }).click();
      await page.getByLabel("Type the name").fill("deploy:web");
      await page.getByLabel("Reason").fill("ci-3 was taken out of service");
    }
    const picture = await page.screenshot({ path: join(folder, `${name}.png`) });
    expect(picture.length).toBeLessThan(120_000);
    await context.close();
  }
  await browser.close();
});
