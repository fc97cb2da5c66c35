import { describe, expect, it } from "vitest";
import { Holdfast } from "../../src/api/holdfast.js";
import { fileStore } from "../../src/stores/file/index.js";
import { waitUntil } from "../servers/wait-until.js";
import { Workshop } from "./command-line.js";

describe("list and show", () => {
  it("show the holders and the waiters", async () => {
    await using shop = new Workshop();
    const holder = await shop.hold("--reason", "release 7", "--meta", "ticket=42", "deploy:web");
    await shop.hold("-j", "3", "smtp");
    const waiter = shop.start(["run", "-v", "deploy:web", "--", "true"]);
    await waiter.shows("place 1 of 1");

    const { stdout } = await shop.run(["list"]);
    expect(stdout).toMatch(/^NAME +KIND +HOLDER/);
    expect(stdout).toMatch(/deploy:web +lock +sh on \S+ \(pid \d+\) .* 1 +release 7/);
    expect(stdout).toMatch(/smtp +slots 1\/3/);
    const few = await shop.run(["list", "--json", "deploy:"]);
    expect(
      few.stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).name),
    ).toEqual(["deploy:web"]);

    const shown = (await shop.run(["show", "deploy:web"])).stdout;
    expect(shown).toContain(`(pid ${holder.pid})`);
    expect(shown).toContain("ticket  42");
    expect(shown).toMatch(/1\. waits: true on \S+ \(pid \d+\)/);
  });

  it("say that there are no locks", async () => {
    await using shop = new Workshop();
    expect(await shop.run(["list"])).toMatchObject({ code: 0, stdout: "" });
    expect((await shop.run(["show", "x"])).stdout).toBe(`x is free in ${shop.store}\n`);
  });

  it("escape control characters in the meta of other clients", async () => {
    await using shop = new Workshop();
    await shop.hold("--reason", "\x1b[2Jgotcha", "x");
    const { stdout } = await shop.run(["show", "x"]);
    expect(stdout).toContain("?[2Jgotcha");
  });
});

describe("list --deadlocks", () => {
  it("shows which holders wait for each other, with exit code 1", async () => {
    await using shop = new Workshop();
    expect(await shop.run(["list", "--deadlocks"])).toMatchObject({
      code: 0,
      stdout: "",
      stderr: "holdfast: no deadlock was found.\n",
    });
    const meta = (label: string) => ({ meta: { label, reason: `needs ${label}` } });
    await using one = new Holdfast(fileStore({ path: shop.path("locks.db") }), meta("one"));
    await using two = new Holdfast(fileStore({ path: shop.path("locks.db") }), meta("two"));
    let holding = 0;
    const nest = (locks: Holdfast, outer: string, inner: string) =>
      locks.mutex(outer).run(async () => {
        holding += 1;
        await waitUntil(() => holding === 2, { what: "both hold their first lock" });
        await locks.mutex(inner).run(() => {});
      });
    const nested = [nest(one, "a", "b"), nest(two, "b", "a")].map((run) => run.catch(() => {}));
    await waitUntil(async () => (await one.findDeadlocks()).length > 0, { what: "a deadlock" });

    const shown = await shop.run(["list", "--deadlocks"]);
    expect(shown.code).toBe(1);
    expect(shown.stdout).toContain("Deadlock: 2 leases wait for each other.");
    const held = (label: string) =>
      `held by ${label} on \\S+ \\(pid \\d+\\), reason: needs ${label}`;
    expect(shown.stdout).toMatch(new RegExp(`  a: ${held("one")}, token \\d+, waits for b`));
    expect(shown.stdout).toMatch(new RegExp(`  b: ${held("two")}, token \\d+, waits for a`));
    const json = await shop.run(["list", "--deadlocks", "--json"]);
    expect(json.code).toBe(1);
    const { steps } = JSON.parse(json.stdout);
    const waits = steps.map(({ name, waitsFor }: Record<string, string>) => `${name} ${waitsFor}`);
    expect(waits.sort()).toEqual(["a b", "b a"]);
    expect((await shop.run(["list", "--deadlocks", "-k", "once"])).code).toBe(64);

    const { token } = steps[0];
    await one.revoke(steps[0].name, { token: BigInt(token), reason: "deadlock" });
    await Promise.all(nested);
    expect((await shop.run(["list", "--deadlocks"])).code).toBe(0);
  });
});

describe("watch", () => {
  it("prints every change when there is no terminal, until a signal ends it", async () => {
    await using shop = new Workshop();
    const watch = shop.start(["watch", "--every", "100ms"]);
    await watch.shows("no lock is in use");
    await shop.hold("x");
    await watch.shows("x     lock");
    watch.kill("SIGINT");
    expect((await watch.result).code).toBe(0);
  });

  it("waits for as long as a timer can be set for", async () => {
    await using shop = new Workshop();
    const watch = shop.start(["watch", "--every", "30d"]);
    await watch.shows("no lock is in use");
    watch.kill("SIGINT");
    expect(await watch.result).toMatchObject({ code: 0, stderr: "" });
  });
});

describe("wait", () => {
  it("waits until the lock is free, without taking it", async () => {
    await using shop = new Workshop();
    expect((await shop.run(["wait", "x"])).code).toBe(0);
    const holder = await shop.hold("x");
    const short = await shop.run(["wait", "-w", "0.3", "x"]);
    expect(short.code).toBe(1);
    expect(short.stderr).toContain("x: not free after 300ms: held by");
    const waiting = shop.start(["wait", "x"]);
    holder.kill("SIGTERM");
    expect((await waiting.result).code).toBe(0);
  });
});

describe("revoke", () => {
  it("does not end the lease of a newer holder", async () => {
    await using shop = new Workshop();
    const holder = await shop.hold("x");
    const { code, stderr } = await shop.run(["revoke", "x", "--token", "1", "--reason", "old"]);
    expect(code).toBe(1);
    expect(stderr).toContain("nothing revoked: token 1 does not hold it");
    expect(stderr).toContain(`(pid ${holder.pid})`);
    expect(holder.process.exitCode).toBe(null);
  });

  it("refuses a reason of more than 1 KiB", async () => {
    await using shop = new Workshop();
    const reason = "ä".repeat(513);
    const { code, stderr } = await shop.run(["revoke", "x", "--token", "1", "--reason", reason]);
    expect(code).toBe(64);
    expect(stderr).toContain("--reason must have at most 1024 bytes.");
  });
});
