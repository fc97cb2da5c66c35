// BullMQ gives a job to one worker, but two jobs of one customer to two workers at a time. A lock
// for each customer keeps them apart, and a job whose customer is busy goes back to the queue, so
// that no worker stands still. Needs a Redis:
//
//   REDIS_URL=redis://localhost:6379 node examples/bullmq-customers.mjs
import { setTimeout as sleep } from "node:timers/promises";
import { DelayedError, Queue, QueueEvents, Worker } from "bullmq";
import { connect } from "holdfast";

/** A processor of jobs of which no two with the same name of a lock run at the same time. */
function oneAtATime(locks, nameOf, process, againMs = 100) {
  return async (job, token) => {
    const tried = await locks.mutex(nameOf(job)).tryRun((lease) => process(job, lease));
    if (tried.ran) return tried.value;
    // Neither a failure nor an attempt: the job comes back later.
    await job.moveToDelayed(Date.now() + againMs, token);
    throw new DelayedError();
  };
}

const { hostname: host, port } = new URL(process.env.REDIS_URL);
const connection = { host, port: Number(port) };
const name = `holdfast-example-${process.pid}`;
const queue = new Queue(name, { connection });
const events = new QueueEvents(name, { connection });
// Two clients stand for two processes.
const clients = [await connect(process.env.REDIS_URL), await connect(process.env.REDIS_URL)];

const atWork = new Map();
let most = 0;
let together = 0;

async function invoice({ data: { customer } }, lease) {
  together += atWork.has(customer) ? 1 : 0;
  atWork.set(customer, lease.token);
  most = Math.max(most, atWork.size);
  await sleep(50);
  lease.assertHeld();
  atWork.delete(customer);
  return `${customer}`;
}

const workers = clients.map((locks) => {
  const process = oneAtATime(locks, ({ data }) => `customer:${data.customer}`, invoice);
  return new Worker(name, process, { connection, concurrency: 4 });
});

await events.waitUntilReady();
const jobs = ["anna", "ben", "anna", "ben", "anna", "ben", "anna", "ben"];
const added = await queue.addBulk(
  jobs.map((customer) => ({ name: "invoice", data: { customer } })),
);
const done = await Promise.all(added.map((job) => job.waitUntilFinished(events)));

console.log(`${done.length} jobs done, ${together} times two of one customer at once`);
console.log(`never more than ${most} customers at work`);

await Promise.all(workers.map((worker) => worker.close()));
await Promise.all([events.close(), queue.obliterate({ force: true }).then(() => queue.close())]);
await Promise.all(clients.map((locks) => locks.close()));
