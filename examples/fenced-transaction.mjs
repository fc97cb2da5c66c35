// A holder sleeps past its lease. Its transaction is refused by the fence in the database, although
// the table that it writes to knows nothing of locks. Needs a Postgres:
//
//   DATABASE_URL=postgres://user@localhost:5432/database node examples/fenced-transaction.mjs
import { Holdfast } from "holdfast";
import { postgresStore } from "holdfast/postgres";
import pg from "pg";

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
// Two clients stand for two processes.
const slow = new Holdfast(postgresStore({ pool }));
const quick = new Holdfast(postgresStore({ pool }));

async function write(who, total, token) {
  const client = await pool.connect();
  try {
    await client.query("begin");
    await client.query("select holdfast.fence($1, $2)", ["invoice:42", token]);
    await client.query("update holdfast_example set total = $1", [total]);
    await client.query("commit");
    console.log(`${who} writes ${total}: accepted`);
  } catch (error) {
    await client.query("rollback");
    if (error.code !== "LF001") throw error;
    console.log(`${who} writes ${total}: refused`);
  } finally {
    client.release();
  }
}

// A fixed lease of 200 ms, and work that takes longer without looking at its signal.
const late = await slow.mutex("invoice:42").acquire({ ttlMs: 200, renew: false });
await pool.query("create table holdfast_example as select 0 as total");

// The store grants the lock when the lease of the slow holder is over.
await quick.mutex("invoice:42").run(async ({ token }) => {
  console.log(`the later token is higher: ${token > late.token}`);
  await write("quick", 2, token);
});
await write("slow", 1, late.token);

const { rows } = await pool.query("select total from holdfast_example");
console.log(`the slow lease is ${late.state}, the total is ${rows[0].total}`);
await pool.query("drop table holdfast_example");
await Promise.all([slow.close(), quick.close()]);
await pool.end();
