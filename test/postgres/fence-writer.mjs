// A process that holds a lock and writes in a fenced transaction, one step for each message. It
// answers each step with what the step gave, or with the code of its error.
import pg from "pg";
import { connect } from "../../dist/index.js";

const [url = "", ttlMs = "500", options = ""] = process.argv.slice(2);
const locks = await connect(url, { ttlMs: Number(ttlMs), waitMs: 60_000 });
const client = new pg.Client({ connectionString: url, options });
client.on("error", () => {});
await client.connect();
let lease;

const steps = {
  acquire: async () => {
    lease = await locks.mutex("invoice:42").acquire();
    return String(lease.token);
  },
  state: async () => lease.state,
  begin: () => client.query("begin"),
  fence: () => client.query("select holdfast.fence($1, $2)", ["invoice:42", lease.token]),
  write: () =>
    client.query("update invoice set tokens = tokens || $1::bigint where id = 42", [lease.token]),
  commit: () => client.query("commit"),
  rollback: () => client.query("rollback"),
};

process.on("message", async ({ step }) => {
  const answer = await steps[step]().then(
    (given) => (typeof given === "string" ? given : "done"),
    (error) => error.code ?? error.message,
  );
  process.send?.({ step, answer });
});
process.send?.({ step: "start", answer: "done" });
