/**
 * A process of a handoff without a lock: deletes keys, or watches them go. Times are of the
 * monotonic clock, which all processes of a machine share.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Etcd3 } from "etcd3";
import { endWithParent } from "../forked.js";
import { nowMs } from "../turns.js";

export interface Order {
  readonly task: "delete" | "watch";
  readonly url: string;
  readonly forMs: number;
  /** A key is there for so long before it goes. */
  readonly pauseMs: number;
}

const KEYS = "raw/";

endWithParent();
const started = new Promise<void>((resume) => process.once("message", () => resume()));

/** Each key is called by its number; reports when the delete of each was asked for. */
async function deleteKeys({ url, forMs, pauseMs }: Order): Promise<number[]> {
  const client = new Etcd3({ hosts: [url] });
  await client.put(`${KEYS}0`).value("");
  process.send?.("ready");
  await started;
  const untilMs = nowMs() + forMs;
  const asked: number[] = [];
  for (let index = 0; nowMs() < untilMs; index += 1) {
    const key = Buffer.from(`${KEYS}${index}`);
    await client.kv.put({ key, value: Buffer.alloc(0) });
    await sleep(pauseMs);
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
const tasks = { delete: deleteKeys, watch: watchKeys };
process.send?.(await tasks[order.task](order));
process.disconnect();
