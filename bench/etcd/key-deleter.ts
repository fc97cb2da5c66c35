/**
 * A process of a handoff without a lock: deletes keys, or watches them go. Times are of the
 * monotonic clock, which all processes of a machine share.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { DELETE, TXN, WATCH } from "../../src/stores/etcd/wire/messages.js";
import { endWithParent } from "../forked.js";
import { nowMs } from "../turns.js";
import { rawClient, SENDING } from "./candidates.js";

export interface Order {
  readonly task: "delete" | "watch";
  readonly url: string;
  readonly forMs: number;
  /** A key is there for so long before it goes. */
  readonly pauseMs: number;
}

const KEYS = "raw/";
const BEHIND_KEYS = "raw0";
const END = `${KEYS}end`;

endWithParent();
const started = new Promise<void>((resume) => process.once("message", () => resume()));

/** Each key is called by its number; reports when the delete of each was asked for. */
async function deleteKeys({ url, forMs, pauseMs }: Order): Promise<number[]> {
  const client = rawClient(url);
  const put = (key: Buffer) => client.call(TXN, { success: [{ requestPut: { key } }] }, SENDING);
  await put(Buffer.from(`${KEYS}0`));
  process.send?.("ready");
  await started;
  const untilMs = nowMs() + forMs;
  const asked: number[] = [];
  for (let index = 0; nowMs() < untilMs; index += 1) {
    const key = Buffer.from(`${KEYS}${index}`);
    await put(key);
    await sleep(pauseMs);
    asked.push(nowMs());
    await client.call(DELETE, { key }, SENDING);
  }
  // Ends the watch of the other process.
  await put(Buffer.from(END));
  await client.call(DELETE, { key: Buffer.from(END) }, SENDING);
  client.close();
  return asked;
}

async function watchKeys({ url }: Order): Promise<number[]> {
  const client = rawClient(url);
  const seen: number[] = [];
  let stop: () => void = () => {};
  const ended = new Promise<void>((resume) => {
    stop = resume;
  });
  const stream = await client.openStream(WATCH, {
    onReply({ created, events }) {
      if (created) process.send?.("ready");
      for (const { kv } of events) {
        if (kv.key.toString() === END) stop();
        else seen.push(nowMs());
      }
    },
    onEnd: (error) => {
      throw error ?? new Error("etcd ended the watch");
    },
  });
  const [key, rangeEnd] = [Buffer.from(KEYS), Buffer.from(BEHIND_KEYS)];
  const rest = { startRevision: 0n, prevKv: false, filters: ["Noput" as const] };
  stream.write({ createRequest: { watchId: 1n, key, rangeEnd, ...rest } });
  await ended;
  stream.close();
  client.close();
  return seen;
}

const order = JSON.parse(process.argv[2] ?? "{}") as Order;
const tasks = { delete: deleteKeys, watch: watchKeys };
process.send?.(await tasks[order.task](order));
process.disconnect();
