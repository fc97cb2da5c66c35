import { describe, expect, it } from "vitest";
import { Workshop } from "./command-line.js";

describe("acquire, renew and release", () => {
  it("hold a lock across processes, by its handle", async () => {
    await using shop = new Workshop();
    const { code, stdout, stderr } = await shop.run(["acquire", "--ttl", "30s", "deploy"]);
    expect([code, stderr]).toEqual([0, ""]);
    const handle = stdout.trim();
    const env = { HOLDFAST_HANDLE: handle };
    expect((await shop.run(["run", "-n", "deploy", "--", "true"])).code).toBe(1);

    const renewed = await shop.run(["renew", "-v", "--ttl", "10m"], { env });
    expect(renewed.code).toBe(0);
    expect(renewed.stderr).toContain("held for another 9m 5");
    // The handle is a secret: no output repeats it.
    expect(renewed.stdout + renewed.stderr).not.toContain(handle);

    expect((await shop.run(["release"], { input: `${handle}\n` })).code).toBe(0);
    expect((await shop.run(["run", "-n", "deploy", "--", "true"])).code).toBe(0);
    expect((await shop.run(["renew"], { env })).code).toBe(79);
    const again = await shop.run(["release"], { env });
    expect(again.code).toBe(79);
    expect(again.stderr).toContain("The lease has ended");
  });

  it("lose the lock when the ttl is over", async () => {
    await using shop = new Workshop();
    await shop.run(["acquire", "--ttl", "1s", "x"]);
    const { code } = await shop.run(["run", "-w", "10s", "x", "--", "true"]);
    expect(code).toBe(0);
  });

  it("hide the handle from a command that runs later", async () => {
    await using shop = new Workshop();
    const env = { HOLDFAST_HANDLE: "hf1.secret" };
    const { stdout } = await shop.run(["run", "x", "-c", 'echo "[$HOLDFAST_HANDLE]"'], { env });
    expect(stdout).toBe("[]\n");
  });

  it.each([
    ["missing", "", "The handle is missing"],
    ["malformed", "garbage-in", "must be a handle"],
  ])("say when the handle is %s", async (_, input, words) => {
    await using shop = new Workshop();
    const { code, stderr } = await shop.run(["release"], { input });
    expect(code).toBe(64);
    expect(stderr).toContain(words);
    expect(stderr).not.toContain("garbage-in");
  });
});
