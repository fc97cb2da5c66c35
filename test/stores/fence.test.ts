/** Fences: a holder that was stopped between its last check and its write is refused. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { httpFence, redisFence } from "../../src/fence/index.js";
import { postgresMigration } from "../../src/stores/postgres/migration.js";
import { type ControlledProcess, startProcess } from "../faults/process.js";
import { type PostgresServer, startPostgres } from "../servers/postgres.js";
import { isStopped } from "../servers/process-state.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";

const TTL_MS = 1_000;

let postgres: PostgresServer;
let redis: RedisServer;
let client: Redis;
let service: Server;
let early: Writer;
let late: Writer;
/** The bodies that the service has written, by its path. */
const written = new Map<string, string[]>();

beforeAll(async () => {
  [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
  await postgres.ask(postgresMigration());
  const columns = "id int primary key, fence bigint not null, tokens bigint[] not null";
  await postgres.ask(`create table invoice (${columns})`);
  client = new Redis(redis.port);
  service = startService();
  await once(service, "listening");
  [early, late] = await Promise.all([startWriter(), startWriter()]);
});
afterAll(async () => {
  await Promise.all([early, late].map((writer) => writer?.process[Symbol.asyncDispose]()));
  service?.close();
  client?.disconnect();
  await Promise.all([postgres?.close(), redis?.close()]);
});

function startService(): Server {
  const lockOf = ({ url = "" }: { url?: string | undefined }): string =>
    new URL(url, "http://service").pathname.slice(1);
  const fence = httpFence({ lockOf });
  const write = (path: string, body: string): void => {
    written.set(path, [...(written.get(path) ?? []), body]);
  };
  const handler = fence.wrap(async (request) => {
    write("/handler", await request.text());
    return new Response(null, { status: 204 });
  });
  const onNode = fence.wrapNode(async (request, response) => {
    write("/node", await textOf(request));
    response.writeHead(204).end();
  });
  const onHandler = async (request: IncomingMessage, response: ServerResponse) => {
    const headers = Object.entries(request.headers).map(([name, value]): [string, string] => [
      name,
      String(value),
    ]);
    const init = { method: "POST", headers, body: await textOf(request) };
    const answer = await handler(new Request("http://service/handler", init));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    response.end(await answer.text());
  };
  return createServer((request, response) => {
    if (request.url === "/handler") void onHandler(request, response);
    else void onNode(request, response);
  }).listen(0, "127.0.0.1");
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += chunk;
  return text;
}

function serviceUrl(): string {
  return `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
}

/** A process with a lock, which does one step for each message. */
async function startWriter(): Promise<Writer> {
  const module = new URL("./fence-writer.mjs", import.meta.url);
  const args = [`redis://127.0.0.1:${redis.port}`, postgres.url, serviceUrl(), `${TTL_MS}`];
  const process = startProcess(module, { args });
  const answerTo = async (step: string): Promise<string> => {
    type Answer = { readonly step: string; readonly answer: string };
    return (await process.receive<Answer>((message) => message.step === step)).answer;
  };
  await answerTo("start");
  return {
    process,
    answerTo,
    begin: (step, of) => process.send({ step, of }),
    async does(step, of) {
      await process.send({ step, of });
      return await answerTo(step);
    },
  };
}

interface Writer {
  readonly process: ControlledProcess;
  answerTo(step: string): Promise<string>;
  begin(step: string, of: string): Promise<void>;
  does(step: string, of: string): Promise<string>;
}

async function tokensInPostgres(): Promise<string[]> {
  const [row] = await postgres.ask("select tokens::text[] as tokens from invoice");
  return row?.tokens as string[];
}

/** The tokens of all writes through each kind of fence, in their order. */
const tokens: Record<string, () => Promise<readonly string[]>> = {
  column: tokensInPostgres,
  function: tokensInPostgres,
  ioredis: () => client.lrange("app:stock", 0, -1),
  nodeRedis: () => client.lrange("stock", 0, -1),
  node: async () => written.get("/node") ?? [],
  handler: async () => written.get("/handler") ?? [],
};

describe.each(Object.keys(tokens))("%s", (kind) => {
  it("refuses a holder that was stopped between its last check and its write", async () => {
    await postgres.ask("truncate invoice");
    await postgres.ask("insert into invoice values (42, 0, '{}')");
    const first = await early.does("acquire", kind);
    expect(await early.does("write", kind)).toBe("written");
    await early.begin("lateWrite", kind);
    await waitUntil(() => isStopped(early.process.pid), { what: "the first holder is stopped" });
    const second = await late.does("acquire", kind);
    expect(await late.does("write", kind)).toBe("written");
    early.process.resume();
    expect(await early.answerTo("lateWrite")).toBe("HF_STALE_TOKEN");
    expect(await tokens[kind]?.()).toEqual([first, second]);
  });
});

describe("redisFence", () => {
  const lease = (token: bigint) => ({ name: "pair", token });
  const write = { script: "return ARGV[1]", keys: ["{a}:x", "{a}:y"], args: ["7"] };

  it("compares tokens of any length as numbers, and tells the highest", async () => {
    for (const token of [9n, 10n, 9_007_199_254_740_993n]) {
      expect(await redisFence(client, lease(token), write)).toBe("7");
    }
    const stale = redisFence(client, lease(9_007_199_254_740_992n), write);
    await expect(stale).rejects.toMatchObject({
      code: "HF_STALE_TOKEN",
      token: 9_007_199_254_740_992n,
      highest: 9_007_199_254_740_993n,
    });
  });

  it("gives nothing and errors of a script as they are", async () => {
    const token = lease(9_007_199_254_740_994n);
    expect(await redisFence(client, token, { ...write, script: "local x = 1" })).toBeNull();
    const script = 'return redis.error_reply("NO stock")';
    await expect(redisFence(client, token, { ...write, script })).rejects.toThrow("NO stock");
  });
});
