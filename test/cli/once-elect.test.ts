import { writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { waitUntil } from "../servers/wait-until.js";
import { Workshop } from "./command-line.js";

const ONCE = ["once", "job", "--keep", "1h"];

describe("once", () => {
  it("runs again after a failure, not after a success", async () => {
    await using shop = new Workshop();
    expect((await shop.run([...ONCE, "-c", "echo a >> log; exit 4"])).code).toBe(4);
    expect((await shop.run([...ONCE, "-c", "echo b >> log"])).code).toBe(0);
    const third = await shop.run([...ONCE, "-c", "echo c >> log"]);
    expect(third.code).toBe(0);
    expect(third.stderr).toContain("job: done already by sh -c on");
    expect(shop.read("log")).toBe("a\nb\n");
    expect((await shop.run(["list"])).stdout).toMatch(/job +once +done by sh -c/);
  });

  it("does not wait for a run under way, unless told to", async () => {
    await using shop = new Workshop();
    const untilTold = "while [ ! -e end ]; do sleep 0.05; done";
    const first = shop.start([...ONCE, "-c", `echo up; ${untilTold}; sleep 1; exit 1`]);
    await first.shows("up");
    const second = await shop.run([...ONCE, "--", "true"]);
    expect(second.code).toBe(1);
    expect(second.stderr).toContain("it is running");
    // The first run fails a second later, and the waiting one takes over.
    writeFileSync(shop.path("end"), "");
    const third = await shop.run([...ONCE, "-w", "30s", "--", "echo", "took over"]);
    expect(third).toMatchObject({ code: 0, stdout: "took over\n" });
    expect((await first.result).code).toBe(1);
  });
});

describe("elect", () => {
  const LEAD = ["elect", "--ttl", "3s", "--grace", "300ms", "boss"];

  it("runs the command in one process, and in another one when the first ends", async () => {
    await using shop = new Workshop();
    const one = shop.start([...LEAD, "-c", "echo one leads; sleep 60"]);
    await one.shows("one leads");
    const two = shop.start([...LEAD, "-v", "-c", "echo two leads; exit 6"]);
    await two.shows("waiting");
    expect(two.stdout).toBe("");
    one.kill("SIGTERM");
    expect((await one.result).code).toBe(143);
    expect(await two.result).toMatchObject({ code: 6, stdout: "two leads\n" });
  });

  it("campaigns again after a loss, and observers see it", async () => {
    await using shop = new Workshop();
    const observer = shop.start(["elect", "--observe", "--json", "boss"]);
    await observer.shows('"leader":null');
    const running = shop.start([...LEAD, "-c", "echo term $HOLDFAST_TOKEN; sleep 60"]);
    await running.shows("term");
    const token = running.stdout.match(/term (\d+)/)?.[1] ?? "";
    await observer.shows(token);
    const revoke = ["revoke", "boss", "--kind", "election", "--token", token, "--reason", "test"];
    expect((await shop.run(revoke)).code).toBe(0);
    await running.shows("campaigning again");
    await waitUntil(() => (running.stdout.match(/term \d+/g) ?? []).length === 2, {
      what: "a second term",
    });
    running.kill("SIGTERM");
    observer.kill("SIGTERM");
    expect((await running.result).code).toBe(143);
    expect((await observer.result).code).toBe(143);
  });
});
