/**
 * A process of a handoff without a lock: deletes znodes, or watches them go. Times are of the
 * monotonic clock, which all processes of a machine share.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Connection } from "../../src/stores/zookeeper/wire/connection.js";
import { create2, exists, remove } from "../../src/stores/zookeeper/wire/requests.js";
import { endWithParent } from "../forked.js";
import { nowMs } from "../turns.js";
import { ownConnection } from "./candidates.js";

export interface Order {
  readonly task: "delete" | "watch";
  readonly port: number;
  /** As many znodes are deleted. */
  readonly count: number;
  /** The pause before each delete. */
  readonly pauseMs: number;
}

endWithParent();
const started = new Promise<void>((resume) => process.once("message", () => resume()));

/** The znodes, which are made by the process that watches them. */
function pathsOf({ count }: Order): readonly string[] {
  return Array.from({ length: count }, (_, index) => `/handed-${index}`);
}

/** Reports when the delete of each znode was asked for. */
async function deleteZnodes(connection: Connection, order: Order): Promise<number[]> {
  process.send?.("ready");
  await started;
  const asked: number[] = [];
  for (const path of pathsOf(order)) {
    await sleep(order.pauseMs);
    asked.push(nowMs());
    await connection.send(remove(path));
  }
  return asked;
}

/** Reports when the end of each znode was told. */
async function watchZnodes(connection: Connection, order: Order): Promise<number[]> {
  const watched = pathsOf(order).map((path) => {
    return new Promise<number>((resolve, reject) => {
      connection.send(create2(path, { mode: "ephemeral" })).catch(reject);
      connection.send(exists(path, () => resolve(nowMs()))).catch(reject);
    });
  });
  // Answered after all requests before it.
  await connection.send(exists("/"));
  process.send?.("ready");
  return Promise.all(watched);
}

const order = JSON.parse(process.argv[2] ?? "{}") as Order;
const connection = await ownConnection(order.port);
const work = order.task === "delete" ? deleteZnodes : watchZnodes;
process.send?.(await work(connection, order));
await connection.endSession();
process.disconnect();
