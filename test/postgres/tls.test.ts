/** Connections by URL over TLS, in the modes of libpq. */
import { copyFile } from "node:fs/promises";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { Authority } from "../servers/certificates.js";
import { giveToUser, type PostgresServer, startPostgres } from "../servers/postgres.js";
import { Trial, urlOf } from "./trial.js";

let authority: Authority;
let server: PostgresServer;
let trial: Trial;
beforeAll(async () => {
  authority = await Authority.make();
  // The certificate is for another host name.
  const { cert, key } = await authority.sign("server", { names: "DNS:elsewhere" });
  server = await startPostgres();
  await server.stop();
  for (const [from, name] of [
    [cert, "server.crt"],
    [key, "server.key"],
  ] as const) {
    await copyFile(from, `${server.dataDir}/${name}`);
    giveToUser(`${server.dataDir}/${name}`);
  }
  await server.start();
  await server.ask("alter system set ssl = on");
  await server.ask("select pg_reload_conf()");
});
afterAll(async () => {
  await server?.close();
  await authority?.[Symbol.asyncDispose]();
});
beforeEach(() => {
  trial = new Trial();
});
afterEach(() => trial.close());

async function encrypted(): Promise<unknown[]> {
  const rows = await server.ask(
    `select ssl from pg_stat_ssl join pg_stat_activity using (pid)
      where application_name = 'holdfast'`,
  );
  return rows.map(({ ssl }) => ssl);
}

test.for([
  ["disable", [false]],
  ["require", [true]],
] as const)("sslmode=%s", async ([mode, expected]) => {
  await trial.turn(await trial.open(`${urlOf(server.port)}?sslmode=${mode}`));
  expect(await encrypted()).toEqual(expected);
});

test("verify-ca checks the authority, and require does so where it knows one", async () => {
  const other = await Authority.make();
  for (const mode of ["verify-ca", "require"]) {
    const url = `${urlOf(server.port)}?sslmode=${mode}`;
    await trial.turn(await trial.open(`${url}&ca=${authority.ca}`));
    await expect(trial.open(`${url}&sslrootcert=${other.ca}`)).rejects.toMatchObject({
      outcome: "not_applied",
      retryable: false,
      message: expect.stringContaining("name the file of its own by ca="),
    });
  }
  await other[Symbol.asyncDispose]();
});

test("verify-full checks the host name too, and is the mode where a file is given", async () => {
  for (const mode of ["sslmode=verify-full&", ""]) {
    await expect(
      trial.open(`${urlOf(server.port)}?${mode}ca=${authority.ca}`),
    ).rejects.toMatchObject({
      retryable: false,
      message: expect.stringContaining("for another host name"),
    });
  }
});

test("a server without TLS is told apart", async () => {
  await using plain = await startPostgres();
  await expect(trial.open(`${plain.url}?sslmode=require`)).rejects.toMatchObject({
    retryable: false,
    message: expect.stringContaining("does not speak TLS"),
  });
});
