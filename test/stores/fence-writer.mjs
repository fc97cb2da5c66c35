// A process that holds a lock and writes through one of the fences. Before a late write it checks
// its lease, and stops itself between the check and the write.
import { Redis } from "ioredis";
import pg from "pg";
import { createClient } from "redis";
import { assertWritten, fencedFetch, postgresFence, redisFence } from "../../dist/fence/index.js";
import { connect } from "../../dist/index.js";

const [redisUrl = "", postgresUrl = "", serviceUrl = "", ttlMs = ""] = process.argv.slice(2);
const locks = await connect(redisUrl, { ttlMs: Number(ttlMs), waitMs: 60_000 });
const client = new pg.Client({ connectionString: postgresUrl });
await client.connect();
const redis = new Redis(redisUrl, { keyPrefix: "app:" });
const nodeRedis = await createClient({ url: redisUrl }).connect();
const script = 'return redis.call("RPUSH", KEYS[1], ARGV[1])';
let lease;

const push = (through, key) =>
  redisFence(through, lease, { script, keys: [key], args: [`${lease.token}`] });
const post = async (path) => {
  const body = `${lease.token}`;
  // As if the process did not look at its signal.
  const { name, token } = lease;
  const answer = await fencedFetch({ name, token }, serviceUrl + path, { method: "POST", body });
  if (!answer.ok) throw new Error(`status ${answer.status}`);
};

const writes = {
  column: async () => {
    const text =
      "update invoice set tokens = tokens || $1::bigint, fence = $1 where id = 42 and fence <= $1";
    const { rowCount } = await client.query(text, [lease.token]);
    assertWritten(rowCount, lease);
  },
  function: async () => {
    await client.query("begin");
    try {
      await postgresFence((text, values) => client.query(text, values), lease);
      await client.query("update invoice set tokens = tokens || $1::bigint", [lease.token]);
      await client.query("commit");
    } catch (error) {
      await client.query("rollback");
      throw error;
    }
  },
  ioredis: () => push(redis, "stock"),
  nodeRedis: () => push(nodeRedis, "stock"),
  node: () => post("/node"),
  handler: () => post("/handler"),
};

const steps = {
  acquire: async (lock) => {
    lease = await locks.mutex(lock).acquire();
    return `${lease.token}`;
  },
  write: (kind) => writes[kind](),
  lateWrite: (kind) => {
    lease.assertHeld();
    process.kill(process.pid, "SIGSTOP");
    return writes[kind]();
  },
};

process.on("message", async ({ step, of }) => {
  const answer = await steps[step](of).then(
    (given) => (typeof given === "string" ? given : "written"),
    (error) => error.code ?? error.message,
  );
  process.send?.({ step, answer });
});
process.send?.({ step: "start", answer: "done" });
