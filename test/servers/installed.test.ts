import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const script = fileURLToPath(new URL("../../scripts/servers.mjs", import.meta.url));
const newer = fileURLToPath(new URL("../../scripts/newer-servers.mjs", import.meta.url));
const run = promisify(execFile);

it("prints nothing when the servers are installed", async () => {
  expect(await run(process.execPath, [script, "redis", "etcd"])).toEqual({
    stdout: "",
    stderr: "",
  });
});

it("prints the command to type when servers are missing and it may not install", async () => {
  // Without a PATH there is no apt-get either.
  const failed = run(process.execPath, [script, "etcd"], { env: { PATH: "" } });
  await expect(failed).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/etcd, etcdctl.*apt-get install --yes etcd-server etcd-client/s),
  });
});

it("names the known servers", async () => {
  const failed = run(process.execPath, [script, "mysql"]);
  await expect(failed).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining("redis, etcd, zookeeper, postgres"),
  });
});

it("says in one line that a newer server is not available", async () => {
  const cache = await mkdtemp(join(tmpdir(), "holdfast-no-servers-"));
  try {
    // Without a PATH there is no apt-get.
    const env = { PATH: "", XDG_CACHE_HOME: cache };
    const failed = run(process.execPath, [newer, "valkey-9"], { env });
    await expect(failed).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^valkey-9 cannot be had: .*apt-get.*\n$/),
    });
    expect(await readdir(join(cache, "holdfast/servers"))).toEqual([]);
  } finally {
    await rm(cache, { recursive: true });
  }
});
