// Ten jobs, and a mail server that bears five connections at a time. Heavy jobs need two.
import { setTimeout as sleep } from "node:timers/promises";
import { Holdfast } from "holdfast";
import { memoryStore } from "holdfast/memory";

const locks = new Holdfast(memoryStore());
const smtp = locks.semaphore("smtp", 5);

const started = [];
let open = 0;
let most = 0;
async function send(job, weight) {
  await smtp.run(
    async () => {
      started.push(job);
      open += weight;
      most = Math.max(most, open);
      await sleep(10);
      open -= weight;
    },
    { weight },
  );
}

await Promise.all(Array.from({ length: 10 }, (_, job) => send(job, job % 3 === 0 ? 2 : 1)));

// A heavy job that does not fit yet is not overtaken by the light ones behind it.
console.log(`started: ${started.join(", ")}`);
console.log(`never more than ${most} connections, ${open} left open`);
await locks.close();
