/**
 * A process of the handoff: takes turns on a lock, or deletes keys, or watches them go. Times are
 * of the monotonic clock, which all processes of a machine share.
 */
import { Etcd3 } from "etcd3";
import { endWithParent } from "../forked.js";
import { nowMs } from "../turns.js";
import { candidate } from "./candidates.js";

export interface Order {
  readonly task: "lock" | "delete" | "watch";
  readonly candidate: string;
  readonly url: string;
  readonly forMs: number;
}

/** When it began, and when its end was asked for. */
export type Hold = readonly [heldMs: number, releasedMs: number];

const KEYS = "raw/";
/** A holder keeps the lock for so long, so that the other is surely waiting. */
const HOLD_MS = 5;

function pause(): Promise<void> {
  return new Promise((resume) => setTimeout(resume, HOLD_MS));
}

endWithParent();
const started = new Promise<void>((resume) => process.once("message", () => resume()));

async function takeTurns({ candidate: name, url, forMs }: Order): Promise<Hold[]> {
  const locker = await candidate(name).open(url);
  // Connects, and opens its session where it has one.
  await (await locker.acquire(`${name} of ${process.pid}`))();
  process.send?.("ready");
  await started;
  const untilMs = nowMs() + forMs;
  const holds: Hold[] = [];
  while (nowMs() < untilMs) {
    const release = await locker.acquire(name);
    const heldMs = nowMs();
    await pause();
    holds.push([heldMs, nowMs()]);
    await release();
  }
  await locker.close();
  return holds;
}

/** Each key is called by its number; reports when the delete of each was asked for. */
async function deleteKeys({ url, forMs }: Order): Promise<number[]> {
  const client = new Etcd3({ hosts: [url] });
  await client.put(`${KEYS}0`).value("");
  process.send?.("ready");
  await started;
  const untilMs = nowMs() + forMs;
  const asked: number[] = [];
  for (let index = 0; nowMs() < untilMs; index += 1) {
    const key = Buffer.from(`${KEYS}${index}`);
    await client.kv.put({ key, value: Buffer.alloc(0) });
    await pause();
    asked.push(nowMs());
    await client.kv.deleteRange({ key });
  }
  // Ends the watch of the other process.
  await client.put(`${KEYS}end`).value("");
  await client.delete().key(`${KEYS}end`);
  client.close();
  return asked;
}

async function watchKeys({ url }: Order): Promise<number[]> {
  const client = new Etcd3({ hosts: [url] });
  const watcher = await client.watch().prefix(KEYS).create();
  process.send?.("ready");
  const seen: number[] = [];
  await new Promise<void>((resume) => {
    watcher.on("delete", ({ key }) => {
      if (key.toString() === `${KEYS}end`) resume();
      else seen.push(nowMs());
    });
  });
  await watcher.cancel();
  client.close();
  return seen;
}

const order = JSON.parse(process.argv[2] ?? "{}") as Order;
const tasks = { lock: takeTurns, delete: deleteKeys, watch: watchKeys };
process.send?.(await tasks[order.task](order));
process.disconnect();
