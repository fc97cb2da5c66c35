import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { waitUntil } from "../servers/wait-until.js";
import { MAIN, type Running, Workshop } from "./command-line.js";

/** All characters that are unsafe to print, except line ends. */
const STEERING = /(?!\n)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;
/** A letter between any two, so that neighbours form no sequence. */
const HOSTILE = "a\x1b[31mb\x07c\rd\x7fe\x9bf\u202eg\u2066h\u200ei\u061cj\u2028k\u200bl\nm";

async function holdHostile(shop: Workshop): Promise<Running> {
  const meta = ["label", "host", "pid", "ticket", HOSTILE].flatMap((key) => {
    return ["--meta", `${key}=${HOSTILE}`];
  });
  return await shop.hold("--ttl", "3s", "--reason", HOSTILE, ...meta, HOSTILE);
}

it("only one file writes to stdout and stderr", () => {
  const folder = join(import.meta.dirname, "../../src/cli");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const writers = files.filter((file) => {
    if (!file.endsWith(".ts") || file.endsWith(".test.ts")) return false;
    const text = readFileSync(join(folder, file), "utf8");
    return /\b(stdout|stderr)\.(write|end)\b|\bconsole\.|\bwriteSync\b/.test(text);
  });
  expect(writers).toEqual(["output.ts"]);
});

describe("text of other clients cannot control the terminal", () => {
  it.each([
    ["list"],
    ["show", HOSTILE],
    ["wait", "-n", HOSTILE],
    ["run", "-n", HOSTILE, "--", "true"],
    ["run", "-v", "-w", "0.5", HOSTILE, "--", "true"],
    ["acquire", "-n", "--ttl", "1s", HOSTILE],
    ["revoke", HOSTILE, "--token", "1", "--reason", "none"],
    ["once", "-v", HOSTILE, "--keep", "1h", "--", "true"],
    ["elect", "-v", HOSTILE, "--", "true"],
    ["run", "-v", "free", "--", HOSTILE],
    ["list", "--kind", HOSTILE],
    ["completion", HOSTILE],
    ["run", "--ttl", HOSTILE, "x", "--", "true"],
    ["run", `--${HOSTILE}`, "x", "--", "true"],
    [HOSTILE],
    ["list", "--store", `file:/sys/${HOSTILE}/locks.db`],
    ["list", "--store", `${HOSTILE}://host`],
  ])("in the output of command line %#", async (...args) => {
    await using shop = new Workshop();
    await holdHostile(shop);
    const { stdout, stderr } = await shop.run(args);
    expect(stdout + stderr).not.toBe("");
    expect(stdout + stderr).not.toMatch(STEERING);
  });

  it("watch and elect --observe", async () => {
    await using shop = new Workshop();
    await holdHostile(shop);
    const leader = shop.start(["elect", "--meta", `host=${HOSTILE}`, HOSTILE, "--", "sleep", "60"]);
    await leader.shows("elected");
    for (const args of [["watch"], ["elect", "--observe", HOSTILE]]) {
      const running = shop.start(args);
      await running.shows("a?[31mb");
      running.kill("SIGTERM");
      const { stdout, stderr } = await running.result;
      expect(stdout + stderr).not.toMatch(STEERING);
    }
  });

  it("a once that is done or running", async () => {
    await using shop = new Workshop();
    const once = ["once", "-v", "--keep", "1h", "--meta", `host=${HOSTILE}`, HOSTILE, "--"];
    const first = shop.start([...once, "sh", "-c", "echo held; exec sleep 60"]);
    await first.shows("held");
    const second = await shop.run([...once, "true"]);
    expect(second.stderr).toContain("it is running by");
    expect(second.stderr).not.toMatch(STEERING);
    first.kill("SIGTERM");
    await first.result;
    await shop.run([...once, "true"]);
    const third = await shop.run([...once, "true"]);
    expect(third.stderr).toContain("done already by");
    expect(third.stderr).not.toMatch(STEERING);
  });

  it("the reason of a revocation, as its holder prints it", async () => {
    await using shop = new Workshop();
    const holder = await holdHostile(shop);
    const { token } = JSON.parse((await shop.run(["show", "--json", HOSTILE])).stdout).holders[0];
    const revoked = await shop.run(["revoke", HOSTILE, "--token", token, "--reason", HOSTILE]);
    expect(revoked.stderr).toContain("revoked the lease");
    const { code, stderr } = await holder.result;
    expect(code).toBe(79);
    expect(stderr).toContain("revoked (a?[31mb");
    expect(revoked.stderr + stderr).not.toMatch(STEERING);
  });

  it("the steps of a handle", async () => {
    await using shop = new Workshop();
    const { stdout, stderr } = await shop.run(["acquire", "-v", "--ttl", "30s", HOSTILE]);
    const env = { HOLDFAST_HANDLE: stdout.trim() };
    const renewed = await shop.run(["renew", "-v"], { env });
    const released = await shop.run(["release", "-v"], { env });
    expect(released.stderr).toContain("released");
    expect(stderr + renewed.stderr + released.stderr).not.toMatch(STEERING);
  });
});

describe("JSON is printable and exact", () => {
  const lines = (text: string): { [key: string]: unknown }[] =>
    text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));

  it.each([
    ["list", "--json"],
    ["show", "--json", HOSTILE],
    ["wait", "--json", "-n", HOSTILE],
    ["run", "--json", "-n", HOSTILE, "--", "true"],
  ])("of %s", async (...args) => {
    await using shop = new Workshop();
    await holdHostile(shop);
    const { stdout, stderr } = await shop.run(args);
    expect(stdout + stderr).not.toMatch(STEERING);
    const [shown] = lines(stdout + stderr) as {
      name?: string;
      holder?: { meta: object };
      holders?: { meta: object }[];
    }[];
    expect(shown?.name).toBe(HOSTILE);
    expect((shown?.holder ?? shown?.holders?.[0])?.meta).toMatchObject({
      reason: HOSTILE,
      host: HOSTILE,
      [HOSTILE]: HOSTILE,
    });
  });

  it("a usage error adds no other line to the events", async () => {
    await using shop = new Workshop();
    const { stderr } = await shop.run(["run", "--json", "--ttl", "soon", "x", "--", "true"]);
    expect(lines(stderr)).toMatchObject([{ event: "error" }]);
  });
});

describe("a closed reader", () => {
  it.each(
    [
      ["list"],
      ["list", "--json"],
      ["show", "x"],
      ["watch"],
      ["watch", "--json"],
      ["acquire", "--ttl", "30s", "y"],
      ["elect", "--observe", "x"],
      ["completion", "bash"],
      ["demo"],
      ["--help"],
      ["run", "--help"],
      ["--version"],
    ].map((args) => ({ args, line: args.join(" ") })),
  )("ends `$line` quietly, with exit code 141", async ({ args }) => {
    await using shop = new Workshop();
    await shop.hold("x");
    const running = shop.start(args);
    running.process.stdout?.destroy();
    expect(await running.result).toMatchObject({ code: 141, stderr: "" });
    // A handle that could not be printed must not keep the lock.
    expect((await shop.run(["show", "y"])).stdout).toBe(`y is free in ${shop.store}\n`);
  });

  it("of stderr changes nothing", async () => {
    await using shop = new Workshop();
    const running = shop.start(["run", "-v", "x", "--", "echo", "out"]);
    running.process.stderr?.destroy();
    expect(await running.result).toMatchObject({ code: 0, stdout: "out\n" });
  });
});

it("a full disk gives exit code 74", async () => {
  await using shop = new Workshop();
  const shell = ["-c", `"$0" "$@" > /dev/full`, process.execPath];
  const { code, stderr } = await shop.startProgram("sh", [...shell, MAIN, "--help"]).result;
  expect(code).toBe(74);
  expect(stderr).toContain("Cannot write to stdout: ENOSPC");
});

it("watch adds no listener with every poll", async () => {
  await using shop = new Workshop();
  const watch = shop.start(["watch", "--json", "--every", "100ms"]);
  await waitUntil(() => watch.stdout.split("\n").length > 15, { what: "15 polls" });
  watch.kill("SIGTERM");
  expect((await watch.result).stderr).toBe("");
});

it("the completion of bash executes no code in a name", async () => {
  await using shop = new Workshop();
  const { stdout } = await shop.run(["completion", "bash"]);
  await shop.hold("x$(touch\tran)");
  const command = `holdfast() { "${process.execPath}" "${MAIN}" "$@"; }`;
  const press = `COMP_WORDS=(holdfast show x) COMP_CWORD=2; _holdfast; echo "\${COMPREPLY[@]}"`;
  const program = [command, stdout, press].join("\n");
  const pressed = await shop.startProgram("bash", ["-c", program]).result;
  expect(pressed.stdout.trim()).toBe(String.raw`x\$\(touch\?ran\)`);
  expect(readdirSync(shop.folder)).not.toContain("ran");
});
