import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { VERBS } from "../../src/cli/verbs.js";
import { Workshop } from "./command-line.js";

const root = join(import.meta.dirname, "../..");

describe("help", () => {
  it("lists every command", async () => {
    await using shop = new Workshop();
    const { code, stdout } = await shop.run(["--help"]);
    expect(code).toBe(0);
    for (const verb of Object.keys(VERBS)) expect(stdout).toMatch(new RegExp(`^  ${verb} `, "m"));
    expect((await shop.run([])).stdout).toBe(stdout);
  });

  it.each(Object.keys(VERBS))("explains %s within 80 columns", async (verb) => {
    await using shop = new Workshop();
    const { code, stdout } = await shop.run([verb, "--help"]);
    expect(code).toBe(0);
    expect(stdout).toContain(`Usage: holdfast ${verb}`);
    expect(stdout.split("\n").filter((line) => line.length > 82)).toEqual([]);
  });

  it("is complete in the documentation", async () => {
    const text = readFileSync(join(root, "docs/cli.md"), "utf8");
    for (const [verb, { load }] of Object.entries(VERBS)) {
      expect(text).toContain(`\`${verb}`);
      for (const option of Object.keys((await load()).options))
        expect(text).toContain(`--${option}`);
    }
    for (const code of ["64", "69", "70", "74", "79", "126", "127"])
      expect(text).toContain(`| ${code} |`);
  });

  it("prints the version of the package", async () => {
    await using shop = new Workshop();
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    expect((await shop.run(["--version"])).stdout).toBe(`${version}\n`);
  });

  it("prints a completion that bash understands", async () => {
    await using shop = new Workshop();
    const { stdout } = await shop.run(["completion", "bash"]);
    const press = `COMP_WORDS=(holdfast re) COMP_CWORD=1; _holdfast; echo "\${COMPREPLY[@]}"`;
    const program = `${stdout}\n${press}`;
    const { stdout: words } = await shop.startProgram("bash", ["-c", program]).result;
    expect(words.trim()).toBe("renew release revoke");
    expect((await shop.run(["completion", "zsh"])).stdout).toContain("compdef _holdfast holdfast");
    expect((await shop.run(["completion", "fish"])).code).toBe(64);
  });
});
