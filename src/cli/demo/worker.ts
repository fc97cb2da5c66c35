/**
 * One of the processes that share the counter: it takes the lock, reads, works a little, and writes
 * the value plus one. On purpose it does not look at its lease before it writes: the token alone
 * has to protect the counter.
 */
import { connect } from "../../api/connect.js";
import type { Lease } from "../../lease/lease.js";
import { type Answer, LOCK_NAME, type Request, TTL_MS } from "./protocol.js";

const WORK_MS = 40;
const pending = new Map<number, (answer: Answer) => void>();
let nextId = 0;

process.on("message", (answer: Answer) => {
  pending.get(answer.id)?.(answer);
  pending.delete(answer.id);
});
process.on("disconnect", () => process.exit(0));

const locks = await connect(process.env.HOLDFAST_STORE ?? "");
const lock = locks.mutex(LOCK_NAME, { ttlMs: TTL_MS, fairness: "strict" });
const isLocked = process.env.HOLDFAST_DEMO !== "unlocked";

for (;;) {
  if (isLocked) {
    const lease = await lock.acquire();
    await ask({ type: "held", token: String(lease.token) });
    await increment(lease);
    await lease.release();
  } else await increment(null);
  await pause(Math.random() * WORK_MS);
}

async function increment(lease: Lease | null): Promise<void> {
  const { value } = await ask({ type: "read" });
  await pause(WORK_MS * (0.5 + Math.random()));
  const token = lease ? String(lease.token) : null;
  await ask({ type: "write", value: value + 1, token, lease: lease?.state ?? null });
}

function ask(request: Request): Promise<Answer> {
  nextId += 1;
  const id = nextId;
  return new Promise((resolve) => {
    pending.set(id, resolve);
    process.send?.({ ...request, id });
  });
}

function pause(delayMs: number): Promise<void> {
  return new Promise((resume) => setTimeout(resume, delayMs));
}
