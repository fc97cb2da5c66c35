// A holder sleeps past its lease and writes late. The table refuses the write by its token.
import { setTimeout as sleep } from "node:timers/promises";
import { Holdfast } from "holdfast";
import { MemorySpace, memoryStore } from "holdfast/memory";

// Two clients of one space stand for two processes.
const space = new MemorySpace();
const slow = new Holdfast(memoryStore({ space }));
const quick = new Holdfast(memoryStore({ space }));

// In SQL: update invoice set total = $1, fence = $2 where id = 42 and fence <= $2
const invoice = { total: 0, fence: 0n };
function write(who, total, token) {
  const isAccepted = invoice.fence <= token;
  if (isAccepted) Object.assign(invoice, { total, fence: token });
  console.log(`${who} writes ${total}: ${isAccepted ? "accepted" : "refused"}`);
}

// A fixed lease of 100 ms, and work that takes longer without looking at its signal.
const late = await slow.mutex("invoice:42").acquire({ ttlMs: 100, renew: false });
const asleep = sleep(300).then(() => write("slow", 1, late.token));

await quick.mutex("invoice:42").run(async ({ token }) => {
  console.log(`the later token is higher: ${token > late.token}`);
  write("quick", 2, token);
});

await asleep;
console.log(`the slow lease is ${late.state}, the total is ${invoice.total}`);
await Promise.all([slow.close(), quick.close()]);
