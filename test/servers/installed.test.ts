import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const script = fileURLToPath(new URL("../../scripts/servers.mjs", import.meta.url));
const run = promisify(execFile);

it("is silent when the servers are there", async () => {
  expect(await run(process.execPath, [script, "redis", "etcd"])).toEqual({
    stdout: "",
    stderr: "",
  });
});

it("says what to type when they are not and it may not install", async () => {
  // Without a PATH there is no apt-get either.
  const failed = run(process.execPath, [script, "etcd"], { env: { PATH: "" } });
  await expect(failed).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/etcd, etcdctl.*apt-get install --yes etcd-server etcd-client/s),
  });
});

it("names the servers it knows", async () => {
  const failed = run(process.execPath, [script, "mysql"]);
  await expect(failed).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining("redis, etcd, zookeeper, postgres"),
  });
});
