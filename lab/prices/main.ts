/** `npm run lab:prices`: measures the prices, and writes them to lab/prices/results.json. */
import { writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { contest, type Question } from "../../bench/contest.js";
import { startEtcd } from "../../test/servers/etcd.js";
import { startRedis } from "../../test/servers/redis.js";
import { english } from "../languages/language.js";
import { durability, nodes, replication } from "./pairs.js";
import { type Price, type Prices, priceTable } from "./prices.js";
import { waiting } from "./waiting.js";

// The compiled file is in lab/build/lab/prices.
const file = join(import.meta.dirname, "..", "..", "..", "prices", "results.json");
const takenAt = new Date().toISOString();
const before = loadNow();

const prices: Price[] = [];
for (const question of [durability, replication, nodes, waiting]) {
  const price = await measure(question);
  prices.push(price);
  const taken = { takenAt, machine: machine(), load: { before, after: loadNow() } };
  process.stdout.write(`${priceTable(price, taken, english)}\n\n`);
}
const load = { before, after: loadNow() };
const results: Prices = { takenAt, machine: machine(), load, versions: await versions(), prices };
writeFileSync(file, `${JSON.stringify(results, null, 2)}\n`);

async function measure(question: Question): Promise<Price> {
  const { name, title, about, unit } = question;
  const standings = await contest(question, { isQuick: false }, (text) => {
    process.stderr.write(`${name}: ${text}\n`);
  });
  const rows = standings.map(({ name: row, median, spread, failure }) => {
    if (failure !== null) throw new Error(`${name}, ${row}: ${failure}`);
    return { name: row, median, spread };
  });
  return { name, title, about, unit, rows };
}

function loadNow(): number {
  return Math.round((loadavg()[0] ?? 0) * 10) / 10;
}

function machine(): string {
  const [cpu] = cpus();
  return `${cpus().length} × ${cpu?.model.trim() ?? "unknown"}, Node ${process.versions.node}`;
}

async function versions(): Promise<Record<string, string>> {
  const [redis, etcd] = await Promise.all([startRedis(), startEtcd()]);
  try {
    const { redis_version = "" } = await redis.info("server");
    const reply = await (await fetch(`${etcd.url}/version`)).text();
    return { redis: redis_version, etcd: /"etcdserver":"([^"]+)"/.exec(reply)?.[1] ?? "" };
  } finally {
    await Promise.all([redis.close(), etcd.close()]);
  }
}
