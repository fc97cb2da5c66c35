import { describe, expect, it } from "vitest";
import { Workshop } from "./command-line.js";

describe("options before the verb", () => {
  it("count as if they followed it", async () => {
    await using shop = new Workshop();
    const elsewhere = `file:${shop.path("other.db")}`;
    const told = await shop.run(["-v", `--store=${elsewhere}`, "run", "x", "--", "true"]);
    expect(told.stderr).toMatch(/x: acquired after .*, token \d+/);
    const asJson = await shop.run(["--json", "--store", elsewhere, "run", "x", "--", "true"]);
    expect(JSON.parse(asJson.stderr.split("\n")[0] ?? "")).toMatchObject({ name: "x" });
    expect((await shop.run(["--store", elsewhere, "--help"])).code).toBe(0);
  });

  it("use the store that they name", async () => {
    await using shop = new Workshop();
    await shop.hold("x");
    const elsewhere = `file:${shop.path("other.db")}`;
    expect((await shop.run(["run", "-n", "x", "--", "true"])).code).toBe(1);
    expect((await shop.run(["--store", elsewhere, "run", "-n", "x", "--", "true"])).code).toBe(0);
  });

  it("are refused by a verb without that option", async () => {
    await using shop = new Workshop();
    const { code, stderr } = await shop.run(["-q", "list"]);
    expect(code).toBe(64);
    expect(stderr).toContain("There is no option -q here.\n");
    expect((await shop.run(["--nonsense", "list"])).code).toBe(64);
    expect((await shop.run(["--store"])).code).toBe(64);
  });

  it.each([
    [["--wait", "5", "run", "x"], "may stand before the command. Write: holdfast COMMAND --wait …"],
    [["--sotre=hunter2", "list"], "There is no option --sotre: did you mean --store?"],
    [["--store", "hunter2"], "The command is missing, as in: holdfast --store URL list"],
    [["--store", "", "list"], "The URL of the store is empty."],
  ])("that cannot lead are explained: %j", async (words, text) => {
    await using shop = new Workshop();
    const { code, stderr } = await shop.run(words);
    expect(code).toBe(64);
    expect(stderr).toContain(text);
    expect(stderr).not.toContain("hunter2");
  });
});

describe("a command without dashes", () => {
  it.each([
    ["run", ["run", "x"]],
    ["run, after options of its own", ["run", "x", "-w", "5"]],
    ["once", ["once", "x", "--keep", "1s"]],
    ["elect", ["elect", "-q", "x"]],
  ])("has all that follows it: %s", async (_, words) => {
    await using shop = new Workshop();
    const { code, stdout } = await shop.run([...words, "echo", "-n", "--help", "$HOME"]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "--help $HOME" });
  });

  it("is refused when dashes follow or when -c is given too", async () => {
    await using shop = new Workshop();
    const dashes = await shop.run(["run", "my", "lock", "--", "echo", "ran"]);
    expect(dashes).toMatchObject({ code: 64, stdout: "" });
    expect(dashes.stderr).toContain('Unexpected argument "lock" after NAME');
    const both = await shop.run(["run", "x", "-c", "echo ran", "echo", "ran"]);
    expect(both).toMatchObject({ code: 64, stdout: "" });
    const observe = await shop.run(["elect", "--observe", "x", "echo", "ran"]);
    expect(observe).toMatchObject({ code: 64, stdout: "" });
  });

  it("is not a command for a verb that runs none", async () => {
    await using shop = new Workshop();
    expect((await shop.run(["show", "x", "echo"])).code).toBe(64);
  });
});

describe("--timeout", () => {
  it("is the same as --wait", async () => {
    await using shop = new Workshop();
    await shop.hold("x");
    const { code, stderr } = await shop.run(["run", "--timeout", "0.3", "x", "--", "true"]);
    expect(code).toBe(1);
    expect(stderr).toContain("x: not acquired after 300ms");
    const twice = await shop.run(["run", "--timeout", "1", "-w", "1", "x", "--", "true"]);
    expect(twice.code).toBe(64);
  });
});

it("a conflict names the reason before the token", async () => {
  await using shop = new Workshop();
  await shop.hold("--reason", "release 7", "x");
  const { stderr } = await shop.run(["run", "-n", "x", "--", "true"]);
  expect(stderr).toMatch(/ since .*, reason: release 7, token \d+\.\n$/);
});
