import { chmodSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { Workshop } from "./command-line.js";

describe("exit codes", () => {
  it.each([
    ["the command's own", ["--", "sh", "-c", "exit 7"], 7],
    ["128 + n for a signal", ["--", "sh", "-c", "kill -9 $$"], 137],
    ["127: not found", ["--", "no-such-command-here"], 127],
    ["of a shell line", ["-c", "exit 3"], 3],
  ])("%s", async (_, args, code) => {
    await using shop = new Workshop();
    expect((await shop.run(["run", "x", ...args])).code).toBe(code);
    expect((await shop.run(["show", "x"])).stdout).toBe(`x is free in ${shop.store}\n`);
  });

  it("126: not executable", async () => {
    await using shop = new Workshop();
    writeFileSync(shop.path("plain"), "");
    chmodSync(shop.path("plain"), 0o644);
    const { code, stderr } = await shop.run(["run", "x", "--", "./plain"]);
    expect(code).toBe(126);
    expect(stderr).toContain("chmod +x");
  });

  it.each([
    [["run"], "NAME is missing"],
    [["run", "x"], "command is missing"],
    [["run", "x", "y", "--", "true"], "behind --"],
    [["run", "-n", "-w", "1", "x", "--", "true"], "Give only one of -n, --wait and --timeout."],
    [["run", "-s", "-j", "2", "x", "--", "true"], "one of -s, -x and -j"],
    [["run", "-j", "0", "x", "--", "true"], "whole number"],
    [["run", "--grace", "20s", "x", "--", "true"], "below half"],
    [["run", "--ttl", "soon", "x", "--", "true"], "no duration"],
    [["run", "--meta", "oops", "x", "--", "true"], "KEY=VALUE"],
    [["run", "--json-fd", "99", "x", "--", "true"], "not open"],
    [["run", "--store", "gopher://x", "x", "--", "true"], "begins with one of"],
    [["once", "x", "--", "true"], "--keep is missing"],
    [["acquire", "x"], "--ttl is missing"],
    [["nonsense"], "no command"],
    [["rnu", "x", "--", "true"], "did you mean run?"],
    [["run", "--nonblok", "x", "--", "true"], "did you mean --nonblock?"],
    [["run", "-w", "-5", "x", "--", "true"], "-w needs a value, and -5 starts with a dash"],
    [["run", "--ttl", "-5s", "x", "--", "true"], "--ttl needs a value, and -5s starts with"],
    [["run", "--wait=-5", "x", "--", "true"], "no duration"],
    [["run", "--store", "file:/x?namspace=y", "x", "--", "true"], "did you mean namespace?"],
  ])("64 for %j", async (args, words) => {
    await using shop = new Workshop();
    const { code, stderr } = await shop.run(args);
    expect(stderr).toContain(words);
    expect(code).toBe(64);
  });
});

describe("waiting", () => {
  it("-n gives up at once and names the holder", async () => {
    await using shop = new Workshop();
    const holder = await shop.hold("--reason", "nightly", "x");
    const { code, stderr } = await shop.run(["run", "-n", "x", "--", "touch", "ran"]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/x: not acquired: held by sh on \S+ \(pid \d+\) since .* token \d+/);
    expect(stderr).toContain(`(pid ${holder.pid})`);
    expect(stderr).toContain("reason: nightly");
    expect((await shop.run(["run", "-n", "-E", "42", "x", "--", "true"])).code).toBe(42);
    expect((await shop.run(["run", "-q", "-n", "x", "--", "true"])).stderr).toBe("");
    expect(shop.read("ran")).toBe("");
  });

  it("-w waits for the given time and no longer", async () => {
    await using shop = new Workshop();
    const holder = await shop.hold("x");
    const startMs = performance.now();
    expect((await shop.run(["run", "-w", "0.5", "x", "--", "true"])).code).toBe(1);
    expect(performance.now() - startMs).toBeGreaterThan(450);

    const waiter = shop.start(["run", "-v", "-w", "30", "x", "--", "echo", "mine"]);
    await waiter.shows("place 1 of 1");
    holder.kill("SIGTERM");
    expect(await waiter.result).toMatchObject({ code: 0, stdout: "mine\n" });
  });

  it("-s shares, -x does not", async () => {
    await using shop = new Workshop();
    await shop.hold("-s", "x");
    expect((await shop.run(["run", "-n", "-s", "x", "--", "true"])).code).toBe(0);
    expect((await shop.run(["run", "-n", "-x", "x", "--", "true"])).code).toBe(1);
  });

  it("-j lets that many commands run", async () => {
    await using shop = new Workshop();
    await shop.hold("-j", "2", "x");
    expect((await shop.run(["run", "-n", "-j", "2", "x", "--", "true"])).code).toBe(0);
    await shop.hold("-j", "2", "x");
    expect((await shop.run(["run", "-n", "-j", "2", "x", "--", "true"])).code).toBe(1);
  });

  it("runs twenty commands strictly one after the other", async () => {
    await using shop = new Workshop();
    const line = 'echo "in $HOLDFAST_TOKEN" >> log; sleep 0.02; echo "out $HOLDFAST_TOKEN" >> log';
    const runs = Array.from({ length: 20 }, () => shop.run(["run", "x", "-c", line]));
    expect((await Promise.all(runs)).map(({ code }) => code)).toEqual(Array(20).fill(0));
    const lines = await shop.lines("log", 40);
    const tokens = lines.filter((text) => text.startsWith("in ")).map((text) => text.slice(3));
    expect(lines).toEqual(tokens.flatMap((token) => [`in ${token}`, `out ${token}`]));
    expect(tokens.map(BigInt)).toEqual(tokens.map(BigInt).sort((a, b) => (a < b ? -1 : 1)));
    expect(new Set(tokens).size).toBe(20);
  });
});

describe("the command", () => {
  it("may hold a lock for longer than a timer can be set for", async () => {
    await using shop = new Workshop();
    const { code, stderr } = await shop.run(["run", "--ttl", "300d", "x", "--", "true"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  });

  it("gets stdin, name and token, but not the store", async () => {
    await using shop = new Workshop();
    const line = `cat; echo "$HOLDFAST_NAME \${HOLDFAST_TOKEN:+token} [$HOLDFAST_STORE]"`;
    const { stdout } = await shop.run(["run", "x", "-c", line], { input: "piped\n" });
    expect(stdout).toBe("piped\nx token []\n");
    const exported = await shop.run(["run", "--export-store", "x", "-c", 'echo "$HOLDFAST_STORE"']);
    expect(exported.stdout).toContain("locks.db");
  });

  it("owns stdout; JSON goes to stderr, with tokens as strings", async () => {
    await using shop = new Workshop();
    const { stdout, stderr } = await shop.run(["run", "--json", "x", "--", "echo", "out"]);
    expect(stdout).toBe("out\n");
    const events = stderr
      .trim()
      .split("\n")
      .map((text) => JSON.parse(text));
    expect(events.map(({ event }) => event)).toEqual(["acquired", "ended", "released"]);
    expect(events[0].token).toMatch(/^\d+$/);
  });

  it("--json-fd writes where it is told", async () => {
    await using shop = new Workshop();
    const line = `"$0" "$@" 3>events`;
    const args = [(await import("./command-line.js")).MAIN, "run", "--json-fd", "3", "x", "--"];
    const shell = ["-c", line, process.execPath, ...args, "echo", "out"];
    const { stdout, stderr } = await shop.startProgram("sh", shell).result;
    expect([stdout, stderr]).toEqual(["out\n", ""]);
    expect(shop.read("events")).toContain('"event":"released"');
  });
});
